/**
 * `baton completion`: what makes a shell complete the arguments of `baton`.
 *
 *      shell ──TAB──▶ its script ──words so far──▶ baton __complete ──▶ what may come next ──▶ the script shows it
 *
 * What may come next is read from the commands themselves (completion/next.ts), so no list of them can fall behind. The
 * scripts (data/completion/) only pass words on: those of the line, from the first to the one under the cursor; and back, in
 * lines, first their kind, then a candidate and its description each, with a tab between. The kinds are `words`; `files`, which
 * the shell knows itself; and `command`, behind the -- of `run`, where another program's line begins.
 *
 * The names of locks come from Redis: they are somebody else's text. So the scripts read what comes line by line, and never
 * split, expand or evaluate it. That is also why no library does this here: those there are give the candidates to
 * `compgen -W`, by which a lock of the name `$(…)` is run by the shell of who presses TAB.
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
    .addArgument(new Argument('<shell>', 'the shell').choices(shells))
    .addHelpText(
      'after',
      `
Examples:
  source <(baton completion bash)                                  # in ~/.bashrc
  source <(baton completion zsh)                                   # in ~/.zshrc, after compinit
  baton completion fish > ~/.config/fish/completions/baton.fish

The names of locks come from the Redis of --url and --prefix on the command line, or else of $REDIS_URL.`,
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
      // What is still under way to Redis ends with this process.
      process.stdout.write(`${[answer, ...lines].join('\n')}\n`, () => process.exit())
    })
}
