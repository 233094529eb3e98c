/**
 * Containers that nobody removes any more. A run of the matrix does without the reaper of testcontainers, whose image
 * may not be had; instead each container carries the id of the process that runs the matrix, and this removes those of
 * one that has ended, also of one that was killed.
 */
import { hostname } from 'node:os'
import { getContainerRuntimeClient } from 'testcontainers'

const key = 'redis-baton.matrix'
const separator = ' on '

/** For BATON_CONTAINER_LABEL. */
export const label = `${key}=${process.pid}${separator}${hostname()}`

/** Removes those of matrices that have ended, and with `mine` those of this one. */
export async function removeLeftovers({ mine }: { mine: boolean }): Promise<void> {
  const { dockerode } = (await getContainerRuntimeClient()).container
  const found = await dockerode.listContainers({ all: true, filters: { label: [key] } })
  const over = found.filter(({ Labels }) => isLeftover(Labels[key] ?? '', mine))
  // One that is being removed already is refused.
  await Promise.allSettled(over.map(({ Id }) => dockerode.getContainer(Id).remove({ force: true })))
}

/** An engine may serve several machines, and the id of a process says something on its own machine only. */
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
