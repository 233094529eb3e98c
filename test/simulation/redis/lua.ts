/**
 * Lua 5.1, the version that Redis uses, in WebAssembly (wasmoon-lua5.1). scripts.test.ts compares what the
 * scripts do here with what they do on a real server. Numbers become text by "%.14g", and arguments of commands by
 * "%.17g".
 *
 * Dragonfly and Garnet have Lua 5.4 (wasmoon), in which whole numbers have a type of their own: 6 / 2 is 3.0, which is
 * no whole number as an argument of a command. Garnet writes it so, and Dragonfly replies it as a text. Here both are
 * forbidden: an argument is written as Lua itself writes the number, and a reply with such a number is an error. The
 * global `unpack`, which both servers keep, is missing here.
 *
 * Scripts have `redis`, `string`, `table`, `math` and Lua's own globals; `cjson`, `cmsgpack`, `struct` and `bit` are
 * missing. There are two differences. The integers of string.format (`%d`) have 32 bits here, so such a format is
 * refused. And 0/0 is written as "nan", where a server on x86 writes "-nan".
 *
 * All simulated servers share one Lua state. This is possible because a script keeps nothing between two runs, and it
 * saves time because each script is compiled only once. Strings and numbers are passed with the functions of Lua's C
 * interface, because the package's own conversion is many times slower.
 */
import { LuaFactory } from 'wasmoon'
import { LuaApi } from 'wasmoon-lua5.1'
import { type CommandReply, ErrorReply, Status, textOf, written } from './values.ts'

/** A reply as a client receives it. */
export type Reply = string | number | null | Reply[]

/** Runs a command. If it throws an ErrorReply, the script can catch this error. Any other error ends the script. */
type Call = (name: string, args: string[]) => CommandReply

/** Thrown if a script fails. If a script returns an error, the server gives an ErrorReply instead. */
export class ScriptError extends Error {
  override readonly name = 'ScriptError'
}

const [BOOLEAN, NUMBER, STRING, TABLE] = [1, 3, 4, 5]

/** The part of Lua's C interface that is used here. States, functions and texts are passed as addresses. */
interface LuaModule {
  readonly HEAPU8: Uint8Array
  readonly HEAPU32: Uint32Array
  addFunction(run: (state: number) => number, signature: string): number
  _malloc(size: number): number
  _free(at: number): void
  _luaL_newstate(): number
  _luaL_openlibs(state: number): void
  _luaL_loadbuffer(state: number, at: number, size: number, name: number): number
  _luaL_ref(state: number, table: number): number
  _lua_createtable(state: number, list: number, fields: number): void
  _lua_error(state: number): number
  _lua_gettop(state: number): number
  /** Only in Lua 5.4. */
  _lua_isinteger?(state: number, index: number): number
  _lua_pcall(state: number, args: number, results: number, handler: number): number
  _lua_pushboolean(state: number, value: number): void
  _lua_pushcclosure(state: number, run: number, upvalues: number): void
  _lua_pushlstring(state: number, at: number, size: number): void
  _lua_pushnumber(state: number, value: number): void
  _lua_rawget(state: number, index: number): void
  _lua_rawgeti(state: number, index: number, key: number): void
  _lua_rawset(state: number, index: number): void
  _lua_rawseti(state: number, index: number, key: number): void
  _lua_settop(state: number, index: number): void
  _lua_toboolean(state: number, index: number): number
  _lua_tolstring(state: number, index: number, size: number): number
  _lua_tonumber(state: number, index: number): number
  _lua_type(state: number, index: number): number
}

/** The functions of Lua 5.4 that Lua 5.1 lacks or that have other parameters there. */
interface LuaModule54 extends LuaModule {
  _luaL_loadbufferx(state: number, at: number, size: number, name: number, mode: number): number
  _lua_pcallk(state: number, args: number, results: number, handler: number, context: number, next: number): number
  _lua_pushinteger(state: number, value: bigint): void
  _lua_rawgeti(state: number, index: number, key: number | bigint): void
  _lua_rawseti(state: number, index: number, key: number | bigint): void
  _lua_tonumberx(state: number, index: number, fine: number): number
}

/** Gives Lua 5.4 the functions of Lua 5.1. A whole number that is pushed becomes an integer, as on a server. */
function like51(module: LuaModule54): LuaModule {
  return Object.assign(Object.create(module) as LuaModule, {
    _luaL_loadbuffer: (state: number, at: number, size: number, name: number) =>
      module._luaL_loadbufferx(state, at, size, name, 0),
    _lua_pcall: (state: number, args: number, results: number, handler: number) =>
      module._lua_pcallk(state, args, results, handler, 0, 0),
    _lua_pushnumber: (state: number, value: number) =>
      Number.isInteger(value) ? module._lua_pushinteger(state, BigInt(value)) : module._lua_pushnumber(state, value),
    _lua_rawgeti: (state: number, index: number, key: number) => module._lua_rawgeti(state, index, BigInt(key)),
    _lua_rawseti: (state: number, index: number, key: number) => module._lua_rawseti(state, index, BigInt(key)),
    _lua_tonumber: (state: number, index: number) => module._lua_tonumberx(state, index, 0),
  })
}

/**
 * Removes the globals that Redis does not have, and makes the other globals read-only. Its arguments become
 * `redis.call` and `redis.pcall`. Returns the table of the globals.
 */
const PROLOGUE = `
local call, try = ...
redis = { call = call, pcall = try }
local protected = pcall
local function outcome(fine, first, ...)
  if not fine and type(first) == 'table' and first.err then return false, first.err end
  return fine, first, ...
end
function pcall(...) return outcome(protected(...)) end
function redis.status_reply(text) return { ok = text } end
function redis.error_reply(text)
  text = string.gsub(text, '^%-', '')
  if not string.find(text, ' ', 1, true) then text = 'ERR ' .. text end
  return { err = text }
end
math.random, math.randomseed = nil, nil
local format, known = string.format, {}
function string.format(form, ...)
  if not known[form] then
    local rest = string.gsub(form, '%%%%', '')
    if string.find(rest, '%%[-+ #0]*%d*%.?%d*[diouxXc]') then error('whole numbers have 32 bits here: write %.0f', 2) end
    known[form] = true
  end
  return format(form, ...)
end
local kept = {}
for name in string.gmatch([[assert error getmetatable ipairs next pairs pcall rawequal rawget select setmetatable tonumber
  tostring type unpack xpcall math string table redis _G _VERSION]], '%S+') do kept[name] = true end
for name in pairs(_G) do if not kept[name] then _G[name] = nil end end
local function absent(_, name) error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2) end
setmetatable(redis, { __index = absent })
setmetatable(_G, { __index = absent, __newindex = function() error('Attempt to modify a readonly table', 2) end })
return _G
`

export class Lua {
  readonly #c: LuaModule
  /** The index of Lua's registry, and in the registry the index of the table of globals. */
  readonly #registry: number
  readonly #globals: number
  readonly #state: number
  /** Maps the text of a script to the index of the compiled script in Lua's registry. */
  readonly #compiled = new Map<string, number>()
  #memory: Buffer
  /** The address of a buffer of `#room` bytes: a string is written there before Lua copies it. */
  #scratch = 0
  #room = 0
  /** The address at which Lua writes the size of a string that is read. */
  readonly #size: number
  #call: Call = () => null
  /** An error that the script must not catch. */
  #fatal: unknown

  constructor(module: LuaModule, registry: number) {
    this.#c = module
    this.#registry = registry
    this.#memory = Buffer.from(module.HEAPU8.buffer)
    this.#size = module._malloc(4)
    this.#state = module._luaL_newstate()
    module._luaL_openlibs(this.#state)
    this.#load(PROLOGUE, 'prologue')
    for (const raises of [true, false]) {
      const command = module.addFunction(state => this.#command(state, raises), 'ii')
      module._lua_pushcclosure(this.#state, command, 0)
    }
    if (module._lua_pcall(this.#state, 2, 1, 0) !== 0) throw new Error(this.#read(this.#state, -1))
    this.#globals = module._luaL_ref(this.#state, registry)
  }

  run(text: string, keys: readonly string[], argv: readonly string[], call: Call): Reply {
    const [c, state] = [this.#c, this.#state]
    c._lua_rawgeti(state, this.#registry, this.#compiled.get(text) ?? this.#compile(text))
    this.#pushGlobal('KEYS', keys)
    this.#pushGlobal('ARGV', argv)
    this.#call = call
    this.#fatal = undefined
    try {
      const failed = c._lua_pcall(state, 0, 1, 0) !== 0
      if (this.#fatal !== undefined) throw this.#fatal
      if (failed) throw new ScriptError(this.#errorAt(-1))
      return this.#replyAt(c._lua_gettop(state))
    } finally {
      c._lua_settop(state, 0)
    }
  }

  #compile(text: string): number {
    this.#load(text, 'user_script')
    const script = this.#c._luaL_ref(this.#state, this.#registry)
    this.#compiled.set(text, script)
    return script
  }

  #load(text: string, name: string): void {
    const [c, state] = [this.#c, this.#state]
    const [code, title] = [Buffer.from(text), Buffer.from(`=${name}\0`)]
    const at = c._malloc(code.length + title.length)
    const memory = this.#currentMemory()
    memory.set(code, at)
    memory.set(title, at + code.length)
    const failed = c._luaL_loadbuffer(state, at, code.length, at + code.length) !== 0
    c._free(at)
    if (failed) throw new ScriptError(`ERR Error compiling script: ${this.#read(state, -1)}`)
  }

  #pushGlobal(name: string, texts: readonly string[]): void {
    const [c, state] = [this.#c, this.#state]
    c._lua_rawgeti(state, this.#registry, this.#globals)
    this.#push(state, name)
    c._lua_createtable(state, texts.length, 0)
    for (let i = 0; i < texts.length; i++) {
      this.#push(state, texts[i]!)
      c._lua_rawseti(state, -2, i + 1)
    }
    c._lua_rawset(state, -3)
    c._lua_settop(state, -2)
  }

  /**
   * Implements `redis.call`, which raises errors, and `redis.pcall`. JavaScript errors must not leave this function,
   * because unwinding would skip Lua's own frames.
   */
  #command(state: number, raises: boolean): number {
    try {
      const [name, ...args] = this.#arguments(state)
      if (name === undefined) throw new ErrorReply('ERR Please specify at least one argument for this redis lib call')
      this.#pushReply(state, this.#call(name, args))
      return 1
    } catch (error) {
      if (!(error instanceof ErrorReply)) this.#fatal ??= error
      this.#pushField(state, 'err', error instanceof Error ? error.message : String(error))
    }
    return raises || this.#fatal !== undefined ? this.#c._lua_error(state) : 1
  }

  #arguments(state: number): string[] {
    const c = this.#c
    const count = c._lua_gettop(state)
    const args: string[] = []
    for (let i = 1; i <= count; i++) {
      const type = c._lua_type(state, i)
      if (type === STRING || (type === NUMBER && c._lua_isinteger)) args.push(this.#read(state, i))
      else if (type === NUMBER) args.push(written(c._lua_tonumber(state, i)))
      else throw new ErrorReply('ERR Lua redis lib command arguments must be strings or integers')
    }
    return args
  }

  #pushReply(state: number, reply: CommandReply): void {
    const c = this.#c
    if (typeof reply === 'string') this.#push(state, reply)
    else if (typeof reply === 'number') c._lua_pushnumber(state, reply)
    else if (reply === null) c._lua_pushboolean(state, 0)
    else if (reply instanceof Status) this.#pushField(state, 'ok', reply.text)
    else {
      const list = reply as readonly CommandReply[]
      c._lua_createtable(state, list.length, 0)
      for (let i = 0; i < list.length; i++) {
        this.#pushReply(state, list[i]!)
        c._lua_rawseti(state, -2, i + 1)
      }
    }
  }

  /** Pushes a table with one field. */
  #pushField(state: number, name: string, text: string): void {
    this.#c._lua_createtable(state, 0, 1)
    this.#push(state, name)
    this.#push(state, text)
    this.#c._lua_rawset(state, -3)
  }

  /** Converts a Lua value to a reply, as Redis does: numbers lose their fractions, lists end before the first nil. */
  #replyAt(index: number): Reply {
    const [c, state] = [this.#c, this.#state]
    const type = c._lua_type(state, index)
    if (type === STRING) return textOf(this.#read(state, index))
    if (type === NUMBER) {
      if (c._lua_isinteger?.(state, index) === 0) throw new ScriptError('ERR a number in a reply is not an integer')
      return Math.trunc(c._lua_tonumber(state, index)) + 0
    }
    if (type === BOOLEAN) return c._lua_toboolean(state, index) ? 1 : null
    if (type !== TABLE) return null
    const refusal = this.#fieldAt(index, 'err')
    if (refusal !== undefined) throw new ErrorReply(refusal)
    const status = this.#fieldAt(index, 'ok')
    if (status !== undefined) return status
    const list: Reply[] = []
    for (let i = 1; ; i++) {
      c._lua_rawgeti(state, index, i)
      const item = c._lua_type(state, -1) > 0 ? this.#replyAt(c._lua_gettop(state)) : undefined
      c._lua_settop(state, -2)
      if (item === undefined) return list
      list.push(item)
    }
  }

  #errorAt(index: number): string {
    const top = this.#c._lua_gettop(this.#state) + 1 + index
    if (this.#c._lua_type(this.#state, top) !== TABLE) return `ERR ${textOf(this.#read(this.#state, top))}`
    return this.#fieldAt(top, 'err') ?? 'ERR unknown error'
  }

  #fieldAt(index: number, name: string): string | undefined {
    const [c, state] = [this.#c, this.#state]
    this.#push(state, name)
    c._lua_rawget(state, index)
    const text = c._lua_type(state, -1) === STRING ? textOf(this.#read(state, -1)) : undefined
    c._lua_settop(state, -2)
    return text
  }

  #push(state: number, bytes: string): void {
    const { length } = bytes
    if (length > this.#room) {
      if (this.#scratch !== 0) this.#c._free(this.#scratch)
      this.#room = 2 * length + 1_024
      this.#scratch = this.#c._malloc(this.#room)
    }
    this.#currentMemory().write(bytes, this.#scratch, 'latin1')
    this.#c._lua_pushlstring(state, this.#scratch, length)
  }

  #read(state: number, index: number): string {
    const at = this.#c._lua_tolstring(state, index, this.#size)
    return this.#currentMemory().toString('latin1', at, at + this.#c.HEAPU32[this.#size >> 2]!)
  }

  /** Returns WebAssembly's memory. When the memory grows, it becomes another buffer. */
  #currentMemory(): Buffer {
    const { buffer } = this.#c.HEAPU8
    if (this.#memory.buffer !== buffer) this.#memory = Buffer.from(buffer)
    return this.#memory
  }
}

// Both packages contain their WebAssembly files, so nothing is downloaded.
export const lua = new Lua((await LuaApi.initialize()).module, -10_000)
const { module } = await new LuaFactory().getLuaModule()
export const lua54 = new Lua(like51(module as unknown as LuaModule54), -1_001_000)
