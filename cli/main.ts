#!/usr/bin/env node
/**
 * Starts the program `baton`. What has to happen before any package is loaded, and before any descriptor is opened, is
 * done here. The rest is in program.ts.
 */
import { keepPipesBlocking } from './output.ts'
import { findDescriptors } from './run/descriptors.ts'
import { hearFromStart } from './signals.ts'

hearFromStart()
findDescriptors()
keepPipesBlocking()
const { perform } = await import('./program.ts')
await perform()
