/** Words of a server, for people and for the database. */
import type { Redactor } from "../domain/secret/redactor.ts";

/** The longest reason that is stored. */
const REASON_LENGTH = 500;

/**
 * The beginning of a text from a server: masked, one line, without what no column holds.
 *
 * @param text whole, or much longer than the beginning: an earlier cut could leave half a secret in it.
 */
export const toldBy = (mask: Redactor, text: string): string =>
  mask
    .redactBeginning(text, REASON_LENGTH)
    .replaceAll(/\p{C}+/gu, " ")
    .slice(0, REASON_LENGTH)
    .toWellFormed();
