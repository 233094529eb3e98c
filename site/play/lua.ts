/// <reference types="vite/client" />
/** Lua in WebAssembly, from a file of the site: by itself, the package would look for that file elsewhere. */
import { LuaApi as Package } from 'wasmoon-lua5.1'
import file from 'wasmoon-lua5.1/dist/liblua5.1.wasm?url'

export const LuaApi = { initialize: () => Package.initialize(file) }
