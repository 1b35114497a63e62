/** The value of a text in JSON. Undefined: it is none. */
export const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

/** Whether a value of unknown origin is an object with named fields, as JSON has them: no list, and no instant (TOML). */
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);

/** The object of a text in JSON. */
export const parseRecord = (text: string): Readonly<Record<string, unknown>> | null => {
  const value = parseJson(text);
  return isRecord(value) ? value : null;
};
