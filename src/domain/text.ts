/** Text from elsewhere, as it may be kept: programs' output holds whatever bytes they wrote. */

/**
 * What a column of text or jsonb can hold of a text: without NUL, each half of a surrogate pair that stands alone
 * replaced by U+FFFD. A text that must be redacted is made storable first: a NUL that goes later would put together what
 * was not known as a secret.
 */
export const storableText = (text: string): string => text.replaceAll("\0", "").toWellFormed();

/** The last `maxLength` UTF-16 code units of a text; one less where that would split a surrogate pair. */
export const cutFront = (text: string, maxLength: number): string =>
  text.length <= maxLength ? text : text.slice(-maxLength).replace(/^[\udc00-\udfff]/u, "");

/** The first `maxLength` UTF-16 code units of a text; one less where that would split a surrogate pair. */
export const cutText = (text: string, maxLength: number): string =>
  text.length <= maxLength ? text : text.slice(0, maxLength).replace(/[\ud800-\udbff]$/u, "");
