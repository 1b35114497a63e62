/** Words of a server, for people and for the database. */
import type { Redactor } from "../domain/redactor.ts";

/** The longest reason that is stored. */
const REASON_LENGTH = 500;

/** A text from a server: masked, one line, without what no column holds. */
export const toldBy = (mask: Redactor, text: string): string =>
  mask
    .redact(text)
    .replaceAll(/\p{C}+/gu, " ")
    .toWellFormed()
    .slice(0, REASON_LENGTH);
