/**
 * The placeholders of prompt templates: `{{ token }}`, which is two braces, blanks, one or more of `A–Z a–z 0–9 _ . -`, blanks, two
 * braces. The page reads them too, so this file imports nothing.
 */

export interface Placeholder {
  readonly token: string;
  /** In the template, with the braces. */
  readonly start: number;
  readonly end: number;
}

const CLOSE_BRACE = 0x7d;

const isBlank = (unit: number): boolean => unit === 0x20 || unit === 0x09 || unit === 0x0a || unit === 0x0d;

const isTokenUnit = (unit: number): boolean =>
  (unit >= 0x61 && unit <= 0x7a) || // a-z
  (unit >= 0x41 && unit <= 0x5a) || // A-Z
  (unit >= 0x30 && unit <= 0x39) || // 0-9
  unit === 0x5f || // _
  unit === 0x2e || // .
  unit === 0x2d; // -

/** The index of the first unit from `start` on that does not belong to the run. */
const skip = (text: string, start: number, belongs: (unit: number) => boolean): number => {
  let index = start;
  while (index < text.length && belongs(text.charCodeAt(index))) index += 1;
  return index;
};

/**
 * The placeholder whose two braces begin at `open`. Null if the text there is not a placeholder. Every unit that it
 * reads before it gives up is a blank or part of a token, so no other `{{` begins among them, and the whole scan stays
 * linear.
 */
const readPlaceholder = (text: string, open: number): Placeholder | null => {
  const start = skip(text, open + 2, isBlank);
  const end = skip(text, start, isTokenUnit);
  if (end === start) return null;
  const close = skip(text, end, isBlank);
  if (text.charCodeAt(close) !== CLOSE_BRACE || text.charCodeAt(close + 1) !== CLOSE_BRACE) return null;
  return { token: text.slice(start, end), start: open, end: close + 2 };
};

/** The first placeholder from `from` on. Null if no placeholder follows. */
export const nextPlaceholder = (template: string, from: number): Placeholder | null => {
  let open = template.indexOf("{{", from);
  while (open !== -1) {
    const placeholder = readPlaceholder(template, open);
    if (placeholder !== null) return placeholder;
    // Move on by one brace: in `{{{x}}}` the placeholder begins at the second.
    open = template.indexOf("{{", open + 1);
  }
  return null;
};

/** What a template reads, each once, e.g. `body.issue.title`. */
export const templateTokens = (template: string): readonly string[] => {
  const tokens = new Set<string>();
  let placeholder = nextPlaceholder(template, 0);
  while (placeholder !== null) {
    tokens.add(placeholder.token);
    placeholder = nextPlaceholder(template, placeholder.end);
  }
  return [...tokens];
};

/** Whether a template reads the variable, a part of it, or a whole that has it. */
export const usesVariable = (template: string, path: string): boolean =>
  templateTokens(template).some(
    (token) => token === path || token.startsWith(`${path}.`) || path.startsWith(`${token}.`),
  );
