/// <reference types="vite/client" />
/** Lua in WebAssembly, from a file of the site: by itself, the package would look for that file elsewhere. */
import { LuaApi as Package } from 'wasmoon-lua5.1'
import file from 'wasmoon-lua5.1/dist/liblua5.1.wasm?url'

export const LuaApi = { initialize: () => Package.initialize(file) }

/**
 * The simulation may run a script a second time, with Lua 5.4, but never a script of mutexes. The page has no other
 * locks. So this Lua 5.4 only pretends to be there, which saves readers a download.
 */
export class LuaFactory {
  async getLuaModule() {
    const memory = { HEAPU8: new Uint8Array(65_536) }
    return { module: new Proxy(memory, { get: (all, name) => Reflect.get(all, name) ?? (() => 0) }) }
  }
}
