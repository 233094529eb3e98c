/**
 * `baton completion` prints a script with which a shell completes the arguments of `baton`.
 *
 *      shell ──TAB──▶ its script ──words so far──▶ baton __complete ──▶ candidates ──▶ the script shows them
 *
 * The candidates are read from the command definitions themselves (completion/next.ts), so they cannot become outdated.
 * The scripts (data/completion/) only pass text on. They send the words of the command line, from the first word to the
 * word under the cursor. The answer's first line is its kind. Each further line is a candidate, with its description
 * after a tab. There are three kinds of answer:
 *
 *      words      the candidates follow
 *      files      the shell lists files itself
 *      command    another program's command line begins here, after the `--` of `run`
 *
 * The names of locks come from Redis, so they are untrusted text. The scripts therefore read the answer line by line
 * and never split, expand or evaluate it. For the same reason no completion library is used here. The existing
 * libraries pass candidates to `compgen -W`, and a lock named `$(…)` would then run as a command in the shell of the
 * user who presses TAB.
 */
import { readFile } from 'node:fs/promises'
import { Argument, type Command } from 'commander'
import { packageRoot } from '../local-redis/package-root.ts'
import { keysFor } from './completion/keys.ts'
import { nextOf } from './completion/next.ts'

const shells = ['bash', 'zsh', 'fish']

export function addCompletion(program: Command): void {
  program
    .command('completion')
    .description('prints a script with which a shell completes commands, options and the names of locks')
    .addArgument(new Argument('<shell>', 'the shell to print the script for').choices(shells))
    .addHelpText(
      'after',
      `
Examples:
  source <(baton completion bash)                                  # in ~/.bashrc
  source <(baton completion zsh)                                   # in ~/.zshrc, after compinit
  baton completion fish > ~/.config/fish/completions/baton.fish

To complete the name of a lock, the script asks the Redis at --url on the
command line, or else at $REDIS_URL.`,
    )
    .action(async (shell: string) => {
      process.stdout.write(await readFile(new URL(`data/completion/baton.${shell}`, packageRoot), 'utf8'))
    })

  program
    .command('__complete', { hidden: true })
    .argument('[words...]', 'the words after the name of the program, up to the one being completed')
    .action(async (words: string[]) => {
      const next = nextOf(program, words)
      const candidates = next.kind === 'keys' ? await keysFor(next) : next.kind === 'words' ? next.words : []
      const lines = candidates.map(({ value, description }) => `${value}\t${description}`)
      const answer = next.kind === 'keys' ? 'words' : next.kind
      // Exiting abandons any request to Redis that is still under way.
      process.stdout.write(`${[answer, ...lines].join('\n')}\n`, () => process.exit())
    })
}
