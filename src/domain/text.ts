/** Rules for text from people and other programs: what can be stored, what a length counts, what is blank, what is one line. */

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

/** Null: its percent escapes are invalid. */
export const decodePercent = (text: string): string | null => {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
};

const EXCERPT_LENGTH = 64;
/** The beginning of a text, for a message about it. */
export const excerpt = (text: string): string =>
  text.length > EXCERPT_LENGTH ? `${text.slice(0, EXCERPT_LENGTH)}…` : text;
/** The same in quotation marks. */
export const quote = (text: string): string => JSON.stringify(excerpt(text));

/** Whether a text has more than `maxLength` characters. A character has one or two UTF-16 units, so a long text is not taken apart. */
export const isLongerThan = (text: string, maxLength: number): boolean =>
  text.length > 2 * maxLength || (text.length > maxLength && [...text].length > maxLength);

/** U+2800 is braille without a dot. */
const visible = /[^\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/u;
/** Whether a reader sees an empty text. */
export const isBlank = (text: string): boolean => !visible.test(text);

/**
 * A text in one line, without control and formatting characters: they become spaces. U+200C and U+200D stay, because words of several
 * scripts and emoji are written with them.
 */
export const plainLine = (text: string): string =>
  text.replaceAll(/(?:(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\s])+/gu, " ").trim();

/** Whether the text has no line end and no other control character. */
export const isOneLine = (text: string): boolean => !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text);
