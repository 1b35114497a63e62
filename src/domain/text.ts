/** Makes text from other programs storable: their output may contain any bytes. */

/**
 * The text as a column of text or jsonb can store it: without NUL, and with U+FFFD for each lone half of a surrogate
 * pair. Make a text storable before it is redacted: removing a NUL later could join two parts into a secret that was
 * not recognised.
 */
export const storableText = (text: string): string => text.replaceAll("\0", "").toWellFormed();

/** The last `maxLength` UTF-16 code units of a text, or one less if that would split a surrogate pair. */
export const cutFront = (text: string, maxLength: number): string =>
  text.length <= maxLength ? text : text.slice(-maxLength).replace(/^[\udc00-\udfff]/u, "");

/** The first `maxLength` UTF-16 code units of a text, or one less if that would split a surrogate pair. */
export const cutText = (text: string, maxLength: number): string =>
  text.length <= maxLength ? text : text.slice(0, maxLength).replace(/[\ud800-\udbff]$/u, "");

const EXCERPT_LENGTH = 64;
/** The beginning of a text, for a message about it. */
export const excerpt = (text: string): string =>
  text.length > EXCERPT_LENGTH ? `${text.slice(0, EXCERPT_LENGTH)}…` : text;
/** The same in quotation marks. */
export const quote = (text: string): string => JSON.stringify(excerpt(text));
