/** The page to play in: a scene from the link, a world that plays it, and the time that passes there. */
import './node.ts'
import './play.css'
import { linkOf, opensAt, type Scene, sceneOf } from './scene.ts'
import { stories } from './stories.ts'
import { View } from './view.ts'
import { World } from './world.ts'

/** The time between two pictures, in real ms; and the longest time that passes at once. */
const FRAME = 50
const LONGEST = 200

/** Plays in `root` until the returned function is called. */
export function start(root: HTMLElement): () => void {
  let { scene, notice } = read()
  let world = new World(scene.acts)
  let stopped = false

  /** The time that passes at once before the next picture, in ms. */
  let skipped = opensAt(scene)

  const keep = () => {
    scene = { ...scene, acts: world.acts }
    const link = linkOf(scene)
    if (sceneOf(link)) history.replaceState(history.state, '', link)
    else view.scene(scene, 'The scene is too long for a link by now, so the address of this page no longer follows it.')
  }
  const begin = () => {
    world = new World(scene.acts)
    view.scene(scene, notice)
  }
  const view = new View(root, {
    act(wish) {
      world.act(wish)
      keep()
      // What is done takes effect even while the time stands still.
      if (scene.speed === 0) skipped += 1
    },
    speed(speed) {
      scene = { ...scene, speed }
      view.scene(scene)
      keep()
    },
    again() {
      scene = sceneOf(decoded(location.hash)) ?? scene
      begin()
    },
    copy() {
      keep()
      const done = navigator.clipboard?.writeText(location.href) ?? Promise.reject()
      done.then(
        () => view.copied('copied'),
        () => view.copied('it is the address of this page'),
      )
    },
  })
  const follow = () => {
    if (location.hash === linkOf(scene)) return
    ;({ scene, notice } = read())
    begin()
    skipped = opensAt(scene)
  }
  addEventListener('hashchange', follow)

  const play = async () => {
    let last = performance.now()
    while (!stopped) {
      await new Promise(resolve => setTimeout(resolve, FRAME))
      const now = performance.now()
      const ms = Math.min(LONGEST, now - last) * scene.speed + skipped
      last = now
      skipped = 0
      const present = world
      if (ms > 0) await present.pass(ms)
      view.show(present, ms === 0)
    }
  }
  view.scene(scene, notice)
  view.show(world, true)
  void play()
  return () => {
    stopped = true
    removeEventListener('hashchange', follow)
  }
}

function read(): { scene: Scene; notice: string } {
  const usual = sceneOf(stories[0]!.link)!
  if (location.hash === '') return { scene: usual, notice: '' }
  const scene = sceneOf(decoded(location.hash))
  return scene
    ? { scene, notice: '' }
    : { scene: usual, notice: 'This link cannot be read as a scene, so here is the first one.' }
}

/** Programs that pass links on may escape some of their characters. */
function decoded(link: string): string {
  try {
    return decodeURIComponent(link)
  } catch {
    return link
  }
}
