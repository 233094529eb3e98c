import which from 'which'
import type { Finding, SourceOption } from './choose.ts'
import { messageOf } from './error-message.ts'
import { launchProcess } from './process.ts'
import { startServer } from './server.ts'
import { serverNames, versionOf } from './server-binary.ts'

export function onPath({ PATH = '' }: NodeJS.ProcessEnv = process.env): SourceOption {
  return { name: 'PATH', find: () => find(PATH) }
}

async function find(path: string): Promise<Finding> {
  if (process.platform === 'win32')
    return { unavailable: 'a server cannot be started as a process on Windows, which lacks the shell sh' }

  const broken: string[] = []
  for (const name of serverNames) {
    const binary = await which(name, { path, nothrow: true })
    if (binary === null) continue
    try {
      const server = await versionOf(binary)
      const launch = launchProcess(binary)
      const description = `${server} from the PATH (${binary})`
      return { source: { kind: 'path', description, start: options => startServer(launch, options) } }
    } catch (error) {
      broken.push(messageOf(error))
    }
  }
  return { unavailable: broken.join('\n') || `no ${serverNames.join(' or ')} is on the PATH` }
}
