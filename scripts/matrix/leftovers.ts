/**
 * Removes abandoned containers. A run of the matrix does not use testcontainers' reaper, whose image may be
 * unavailable. Instead each container has a label with the id of the process that runs the matrix. This module removes
 * the containers of processes that have ended or were killed.
 */
import { hostname } from 'node:os'
import { getContainerRuntimeClient } from 'testcontainers'

const key = 'redis-baton.matrix'
const separator = ' on '

/** The label of this run's containers. BATON_CONTAINER_LABEL passes it to the tests, which start the containers. */
export const label = `${key}=${process.pid}${separator}${hostname()}`

/** Removes the containers of ended matrix runs and, with `mine`, those of this run. */
export async function removeLeftovers({ mine }: { mine: boolean }): Promise<void> {
  const { dockerode } = (await getContainerRuntimeClient()).container
  const found = await dockerode.listContainers({ all: true, filters: { label: [key] } })
  const over = found.filter(({ Labels }) => isLeftover(Labels[key] ?? '', mine))
  // Ignores failures: the engine refuses to remove a container that is already being removed.
  await Promise.allSettled(over.map(({ Id }) => dockerode.getContainer(Id).remove({ force: true })))
}

/**
 * Returns whether a container is left over: its label names a process of this machine that has ended or, with `mine`,
 * this process. The id of a process on another machine has no meaning here.
 */
export function isLeftover(owner: string, mine: boolean): boolean {
  const [pid, host] = owner.split(separator)
  if (host !== hostname()) return false
  return Number(pid) === process.pid ? mine : !isRunning(Number(pid))
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
