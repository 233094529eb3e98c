/** Access to the elements of the page. Text is set only by `textContent`: the page's content policy refuses markup. */

export function element<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id)
  if (!found) throw new Error(`the page has no element ${id}`)
  return found as T
}

/** Returns the element inside `parent` that the selector finds. No selector contains text from Redis. */
export function inside<T extends Element = HTMLElement>(parent: Element, selector: string): T {
  const found = parent.querySelector<T>(selector)
  if (!found) throw new Error(`the page has no ${selector}`)
  return found
}

/** Makes a new element with these attributes. */
export function made<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Readonly<Record<string, string>> = {},
  ...children: readonly Node[]
): HTMLElementTagNameMap[K] {
  const fresh = document.createElement(name)
  for (const [attribute, value] of Object.entries(attributes)) fresh.setAttribute(attribute, value)
  fresh.append(...children)
  return fresh
}

/**
 * Sets a text only if it differs. Setting the same text again would cause a layout, and a screen reader would repeat
 * it.
 */
export function say(where: Element, text: string): void {
  if (where.textContent !== text) where.textContent = text
}

export function show(where: HTMLElement, visible: boolean): void {
  if (where.hidden === visible) where.hidden = !visible
}

/** Draws the bar of a lease. `share` is the part of the lease that is left, 0..1; null if there is no lease. */
export function drawShare(bar: HTMLElement, share: number | null): void {
  const hidden = share === null ? 'hidden' : ''
  if (bar.style.visibility !== hidden) bar.style.visibility = hidden
  const value = String(share ?? 0)
  if (bar.style.getPropertyValue('--share') === value) return
  bar.style.setProperty('--share', value)
  bar.classList.toggle('low', (share ?? 0) < 0.4)
}
