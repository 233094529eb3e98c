import { posix, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { slug } from 'github-slugger'
import { defineConfig, type MarkdownRenderer } from 'vitepress'
import { standIns } from './browser.ts'
import { base, fileOf, linkOf, placeOf, published, repository } from './places.ts'
import { searchOptions } from './search.ts'
import { sidebar } from './sidebar.ts'
import { writeTwins } from './twins.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))

type Token = ReturnType<MarkdownRenderer['parse']>[number]

/** Pages are rendered by the Vue of this folder, and not by one that would be looked for where the pages are. */
const vueFromHere = {
  name: 'vue-from-here',
  enforce: 'pre' as const,
  resolveId: (id: string, _importer: string | undefined, { ssr }: { ssr?: boolean }) =>
    ssr && /^vue(\/|$)/.test(id) ? { id, external: true } : undefined,
}

/** A baton, slanted as one that is passed on. */
const icon =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><path d="M6 26 26 6" stroke="#3451b2" stroke-width="8" stroke-linecap="round"/></svg>'

export default defineConfig({
  title: 'redis-baton',
  description: 'Locks for Redis and Node.js whose waiters do not poll',
  lang: 'en',
  head: [['link', { rel: 'icon', href: `data:image/svg+xml,${encodeURIComponent(icon)}` }]],
  base,
  // The pages are where the repository has them, so that they are read there as well.
  srcDir: '..',
  srcExclude: ['test/**'],
  rewrites: file => placeOf(file) ?? file,
  // A module of the page to play in waits for its WebAssembly (top-level `await`).
  vite: { plugins: [vueFromHere, standIns], build: { target: 'es2022' } },
  sitemap: { hostname: published },
  buildEnd: ({ pages, outDir }) => writeTwins(pages, root, outDir),
  // Its pages have no file that could be edited: what they say is in the sources.
  transformPageData: ({ relativePath }) =>
    relativePath.startsWith('reference/') ? { frontmatter: { editLink: false } } : undefined,
  markdown: {
    languageAlias: { acl: 'ini', crontab: 'sh' },
    anchor: { slugify: text => slug(text) },
    config(md) {
      md.core.ruler.push('adapt', ({ tokens, env }) => adapt(tokens, relative(root, env.realPath ?? env.path)))
      md.core.ruler.before('inline', 'paragraphs', state => {
        state.tokens = withFewerHeadings(state.tokens)
      })
    },
  },
  themeConfig: {
    sidebar: sidebar(),
    outline: [2, 3],
    search: { provider: 'local', options: { miniSearch: { searchOptions } } },
    nav: [
      { text: 'Guide', link: '/guide/getting-started' },
      { text: 'Reference', link: '/reference/redis-baton/' },
      { text: 'Examples', link: '/examples/' },
      { text: 'Inside', link: '/inside/life-of-a-request' },
    ],
    socialLinks: [{ icon: 'github', link: repository }],
    editLink: { pattern: `${repository}/edit/main/:path`, text: 'Edit this page' },
  },
})

/** Links are written for where the file is, and not for where the page is. Pictures are read from where they are. */
function adapt(tokens: readonly Token[], file: string): void {
  for (const token of tokens.flatMap(({ children }) => children ?? [])) {
    // In a table, code of such a length may be broken anywhere (theme/tables.css).
    if (token.type === 'code_inline' && token.content.length > 22) token.attrSet('class', 'long')
    const href = token.type === 'link_open' ? token.attrGet('href') : null
    if (href !== null) token.attrSet('href', linkOf(href, file))
    const picture = token.type === 'image' ? fileOf(token.attrGet('src')!, file) : undefined
    if (picture !== undefined) token.attrSet('src', `./${posix.relative(posix.dirname(file), picture)}`)
  }
}

/**
 * TypeDoc gives each tag of a comment a heading of its own. "Since 0.1.0" is a line here: as a heading, it would be half
 * of most pages. And a function has one heading "Throws", however many errors it has.
 */
function withFewerHeadings(tokens: readonly Token[]): Token[] {
  let last = ''
  const isSince = (i: number) => tokens[i]?.type === 'heading_open' && tokens[i + 1]?.content === 'Since'
  const again = tokens.map(({ type }, i) => {
    if (type !== 'heading_open') return false
    const before = last
    last = tokens[i + 1]!.content
    return last === 'Throws' && before === 'Throws'
  })
  return tokens.filter((token, i) => {
    if (isSince(i - 4)) token.content = `Since ${token.content}`
    return ![i, i - 1, i - 2].some(i => isSince(i) || again[i])
  })
}
