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
    if (/^(decisions|lua|src|benchmarks|project)\/|^guide\/(life-of-a-request|protocol|model|testing)\./.test(path))
      return 0.1
    return path.startsWith('reference/') ? 0.4 : 1
  },
}
