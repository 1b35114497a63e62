/** The message of an error, or any other thrown value as text. */
export const thrownText = (thrown: unknown): string =>
  thrown instanceof Error ? thrown.message : String(thrown);

/** A thrown value as an error. */
export const toError = (thrown: unknown): Error =>
  thrown instanceof Error ? thrown : new Error(String(thrown));
