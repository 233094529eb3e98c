/**
 * Extracts the package's public surface, as a user's compiler sees it. The compiler emits the declarations, and API
 * Extractor reads them, once for each entry of `exports` in package.json. API Extractor contains a TypeScript of its
 * own, so the project may use a version that API Extractor does not support.
 *
 * The results are a model of all public items with their doc comments, and a report of the bare signatures. Each change
 * of the surface changes a line of the report.
 */
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { CompilerState, Extractor, ExtractorConfig, ExtractorLogLevel } from '@microsoft/api-extractor'
import { type ApiItem, ApiModel } from '@microsoft/api-extractor-model'
import { emit, emitted } from '../build/declarations.ts'
import { entries, root } from '../build/entries.ts'

export interface Entry {
  /** The name to import: `redis-baton`, `redis-baton/…`. */
  readonly name: string
  /** The base of file names: `redis-baton`, `opentelemetry`. */
  readonly file: string
  readonly items: readonly ApiItem[]
  /** The entry itself. Its doc comment is the one at the top of the entry's source file. */
  readonly item: ApiItem
  /** The signatures, as API Extractor reports them. */
  readonly report: string
  /** Faults in comments, and comments that cannot be parsed. */
  readonly complaints: readonly string[]
}

export async function extract(): Promise<Entry[]> {
  await mkdir(join(root, '.cache'), { recursive: true })
  const folder = await mkdtemp(join(root, '.cache', 'api-'))
  try {
    const types = join(folder, 'types')
    await emit(types)
    const configs = entries.map(({ name, file: base, source }) => {
      const own = base === 'index'
      const file = own ? name : base
      return { name, file, config: configOf(folder, file, emitted(types, source), own) }
    })
    const [first, ...others] = configs.map(({ config }) => config)
    const additionalEntryPoints = others.map(config => config.mainEntryPointFilePath)
    const compilerState = CompilerState.create(first!, { additionalEntryPoints })
    const found = await Promise.all(
      configs.map(async ({ name, file, config }) => {
        const complaints = invoke(config, compilerState)
        const item = new ApiModel().loadPackage(config.apiJsonFilePath)
        const report = await readFile(config.reportFilePath, 'utf8')
        return { name, file, item, items: item.entryPoints[0]!.members, report, complaints }
      }),
    )
    return found.map(entry => ({ ...entry, report: withPointers(entry, found) }))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/**
 * A signature may name a type that the entry does not export. The report contains such types only if `own` is true. It
 * is true only for the main entry.
 */
function configOf(folder: string, file: string, entry: string, own: boolean): ExtractorConfig {
  return ExtractorConfig.prepare({
    packageJsonFullPath: join(root, 'package.json'),
    configObjectFullPath: undefined,
    configObject: {
      projectFolder: root,
      mainEntryPointFilePath: entry,
      newlineKind: 'lf',
      compiler: {
        overrideTsconfig: {
          compilerOptions: {
            target: 'es2022',
            lib: ['es2024', 'esnext.disposable'],
            module: 'nodenext',
            moduleResolution: 'nodenext',
            types: ['node'],
            strict: true,
            skipLibCheck: true,
          },
          files: [entry],
        },
      },
      apiReport: {
        enabled: true,
        reportFileName: `${file}.api.md`,
        reportFolder: folder,
        reportTempFolder: join(folder, 'temp'),
        includeForgottenExports: own,
      },
      docModel: { enabled: true, apiJsonFilePath: join(folder, `${file}.api.json`), includeForgottenExports: own },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      messages: {
        compilerMessageReporting: { default: { logLevel: ExtractorLogLevel.Error } },
        extractorMessageReporting: {
          default: { logLevel: ExtractorLogLevel.Error },
          // Every export is public, so release tags are not needed. scripts/api/missing.ts reports missing comments.
          'ae-missing-release-tag': { logLevel: ExtractorLogLevel.None },
          'ae-undocumented': { logLevel: ExtractorLogLevel.None },
          // A signature may name types that the entry does not export. This is no error.
          'ae-forgotten-export': { logLevel: ExtractorLogLevel.None },
        },
        tsdocMessageReporting: {
          default: { logLevel: ExtractorLogLevel.Error },
          // The hyphen is not required, because most editors know the form `@param name text`.
          'tsdoc-param-tag-missing-hyphen': { logLevel: ExtractorLogLevel.None },
        },
      },
    },
  })
}

/**
 * A type that an entry only names may be an export of another entry, which reports it. So the report says which one,
 * instead of showing the type as one that nobody can import.
 */
function withPointers({ report }: Entry, all: readonly Entry[]): string {
  return report.replace(/^\/\/ @public\n(?:interface|type|class) (\w+)[\s\S]*?\n(?=\n)/gm, (block, name: string) => {
    const owner = all.find(({ report }) => new RegExp(`^export \\w+ ${name}\\b`, 'm').test(report))
    return owner ? `// ${name} is exported by ${owner.name}\n` : block
  })
}

function invoke(config: ExtractorConfig, compilerState: CompilerState): string[] {
  const complaints: string[] = []
  Extractor.invoke(config, {
    compilerState,
    localBuild: true,
    messageCallback(message) {
      message.handled = true
      if (message.logLevel === ExtractorLogLevel.Error) complaints.push(message.formatMessageWithLocation(root))
    },
  })
  return complaints
}
