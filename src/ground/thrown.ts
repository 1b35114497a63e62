/** The message of an error, or any other thrown value as text. */
export const thrownText = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);

/** A thrown value as an error. */
export const toError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));
