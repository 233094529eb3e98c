/**
 * HTML from templates. Every inserted value is escaped unless it is a `Markup`, so no caller can forget to escape.
 * Escaping matters because error messages and versions come from other people's code.
 */
export class Markup {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

export type Part = Markup | string | number | false | undefined | readonly Part[]

/** Makes HTML from a template. Attribute values in the template must be in double quotes. */
export function markup(literals: TemplateStringsArray, ...parts: readonly Part[]): Markup {
  return new Markup(literals.reduce((text, literal, i) => text + render(parts[i - 1]) + literal))
}

/** Inserts text unescaped. Use it only for constant text of this program, such as the style sheet. */
export const trusted = (text: string): Markup => new Markup(text)

function render(part: Part): string {
  if (part instanceof Markup) return part.text
  if (part === undefined || part === false) return ''
  if (typeof part === 'object') return part.map(render).join('')
  return escapeText(String(part))
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}
/**
 * Characters to be replaced: control characters, which HTML does not allow; characters that change the direction of
 * writing, which could garble the text around them; and lone surrogates.
 */
const unprintable = /[^\P{Cc}\n\t]|[\u202a-\u202e\u2066-\u2069]|\p{Cs}/gu

function escapeText(text: string): string {
  return text.replace(unprintable, '\ufffd').replace(/[&<>"']/g, character => entities[character] as string)
}
