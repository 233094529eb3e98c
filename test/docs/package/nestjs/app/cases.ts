/**
 * Runs the cases in which the module and the decorator are used in Nest's container. For each case, this program prints
 * a line of JSON with the error, or with null.
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

// Nest has refused to start some of the applications, and their clients are still open. So the process has to be ended.
main().finally(() => process.exit())
