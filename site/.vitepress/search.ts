/**
 * How the search ranks. VitePress writes this function into the pages as text, so it uses nothing from outside itself.
 */
export const searchOptions = {
  /** `id` is the address of a section, `term` a word that was found in it. */
  boostDocument(id: string, term: string): number {
    const path = id.replace(/^\/redis-baton\//, '')
    const wanted = {
      'guide/getting-started': /^(get|start|install|begin)/,
      'guide/testing-your-program': /^(test|mock|fake|jest|vitest)/,
      'guide/errors': /^(err|code|exception)/,
      'guide/choosing': /^tenant/,
      'guide/serverless': /^(serverless|lambda|vercel)/,
    }
    for (const [page, words] of Object.entries(wanted)) if (path.startsWith(page) && words.test(term)) return 8
    if (path.startsWith('inside/')) return 0.1
    // It names every rival and every measure, and answers few questions.
    if (path.startsWith('guide/benchmarks')) return 0.4
    return path.startsWith('reference/') ? 0.4 : 1
  },
}
