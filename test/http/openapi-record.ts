/**
 * The recorded OpenAPI document: JSON with one operation or schema a line, so that a change of one is a change of its
 * line. Lines are long, so a test prints the fields that differ.
 */
type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const isList = (value: unknown): value is readonly unknown[] =>
  Array.isArray(value) && value.some((item) => typeof item === "object");

/** An object with a line for each entry. Objects within it are opened to this depth. */
const opened = (fields: Fields, depth: number): string => {
  const lines = Object.entries(fields).map(([key, value]) => {
    const text = depth > 1 && isFields(value) ? opened(value, depth - 1) : JSON.stringify(value);
    return `${JSON.stringify(key)}: ${text}`;
  });
  return `{\n${lines.join(",\n")}\n}`;
};

/** The end of a path is on the line of the next one. */
export const recordText = (document: Fields): string =>
  `${opened(document, 3).replaceAll("\n},\n", "\n},")}\n`;

/** Whose line it is, and the path within it. */
const place = (path: readonly string[]): string => {
  const [part, name = "", more = "", ...inner] = path;
  if (part === "paths") return [`${more.toUpperCase()} ${name}`, ...inner].join(" . ");
  if (part === "components") return [`${name} ${more}`, ...inner].join(" . ");
  return path.join(" . ");
};

const MAX_TEXT = 200;
const shown = (value: unknown): string => {
  const text = value === undefined ? "(absent)" : JSON.stringify(value);
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text;
};

/** A line for each field that differs: `GET /v1/me . responses . 200 . description: "before" -> "now"`. */
export const differences = (
  before: unknown,
  now: unknown,
  path: readonly string[] = [],
): readonly string[] => {
  const isNested = (isFields(before) && isFields(now)) || (isList(before) && isList(now));
  if (isNested) {
    const [old, current] = [before as Fields, now as Fields];
    return [...new Set([...Object.keys(old), ...Object.keys(current)])].flatMap((key) =>
      differences(old[key], current[key], [...path, key]),
    );
  }
  if (JSON.stringify(before) === JSON.stringify(now)) return [];
  return [`${place(path)}: ${shown(before)} -> ${shown(now)}`];
};
