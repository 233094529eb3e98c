/** What Nest's container makes of the module and of the decorator. Says of each case what went wrong, as a line of JSON. */
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

// Applications that were refused have left clients behind, as a process that ends with them would.
main().finally(() => process.exit())
