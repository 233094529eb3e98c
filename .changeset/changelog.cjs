/**
 * How a change becomes an entry of CHANGELOG.md: as it was written. Changesets would put a commit's hash before it, which
 * helps those who have the repository, and has them already.
 */
module.exports = {
  async getReleaseLine({ summary }) {
    const [first, ...others] = summary.trim().split('\n')
    return [`- ${first}`, ...others.map(line => (line ? `  ${line}` : ''))].join('\n')
  },
  // There is one package, so none depends on another.
  async getDependencyReleaseLine() {
    return ''
  },
}
