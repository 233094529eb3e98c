/**
 * How the module and the decorator work in Nest's container. Reports what went wrong in each case, as a line of JSON.
 */
import * as container from './container.js'
import * as decorator from './decorator.js'
import * as wiring from './module.js'

async function main() {
  for (const [group, cases] of Object.entries({ container, decorator, module: wiring })) {
    for (const [name, run] of Object.entries(cases)) {
      const error = await run().catch((error: unknown) => (error instanceof Error ? error.stack : String(error)))
      console.log(JSON.stringify({ name: `${group} ${name}`, error: error ?? null }))
    }
  }
}

// Refused applications have left clients open; exiting closes them, as in a process that ends because of the refusal.
main().finally(() => process.exit())
