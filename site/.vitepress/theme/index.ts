import theme from 'vitepress/theme'
import { h } from 'vue'
import Hero from './hero.md'
import './hero.css'
import './tables.css'

/** The code of the README is beside the headline of the first page. */
const code = { 'home-hero-image': () => h('div', { class: 'vp-doc hero-code' }, h(Hero)) }

export default { ...theme, Layout: () => h(theme.Layout, null, code) }
