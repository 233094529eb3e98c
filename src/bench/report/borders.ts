const names = [
  ...['top', 'top-mid', 'top-left', 'top-right', 'bottom', 'bottom-mid', 'bottom-left', 'bottom-right'],
  ...['left', 'left-mid', 'mid', 'mid-mid', 'right', 'right-mid', 'middle'],
]

/** For a table without any of the lines that cli-table3 draws. */
export const noBorders: Readonly<Record<string, string>> = Object.fromEntries(names.map(name => [name, '']))
