/** Items as data of an event, which has a limit. A longer item is sent with its texts cut. */
import type { ItemWire } from "../steps/sessions/conversation-wire.ts";

/** The longest event, in bytes. */
const FRAME_MAX = 96 * 1024;
/** For the lines around the data. */
const AROUND = 64;

/** How much of each text, list and object stays. The first that makes the item short enough is taken. */
const CUTS = [
  { text: 64 * 1024, entries: 1024 },
  { text: 32 * 1024, entries: 512 },
  { text: 16 * 1024, entries: 256 },
  { text: 4 * 1024, entries: 64 },
  { text: 1024, entries: 16 },
  { text: 256, entries: 8 },
] as const;
type Cut = (typeof CUTS)[number];

/** A text's beginning, without half of a surrogate pair at its end. */
const beginning = (text: string, length: number): string =>
  text.length <= length ? text : text.slice(0, length).replace(/[\ud800-\udbff]$/, "");

/** The JSON value with shorter texts, lists and objects. */
const cutValue = (value: unknown, cut: Cut): unknown => {
  if (typeof value === "string") return beginning(value, cut.text);
  if (Array.isArray(value)) return value.slice(0, cut.entries).map((entry) => cutValue(entry, cut));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .slice(0, cut.entries)
      .map(([key, entry]) => [beginning(key, cut.text), cutValue(entry, cut)]),
  );
};

/** The item cut. Its own fields all stay: they are fewer than any cut's entries where it matters. */
const cutItem = (item: ItemWire, cut: Cut) => ({
  ...item,
  content: cutValue(item.content, cut),
  tool:
    item.tool === null
      ? null
      : {
          name: beginning(item.tool.name, cut.text),
          kind: item.tool.kind,
          title: cutValue(item.tool.title, cut),
          input: cutValue(item.tool.input, cut),
          output: beginning(item.tool.output, cut.text),
          truncated: item.tool.truncated || item.tool.output.length > cut.text,
          changes: cutValue(item.tool.changes, cut),
        },
  plan: cutValue(item.plan, cut),
  request: cutValue(item.request, cut),
  model: cutValue(item.model, cut),
  error: cutValue(item.error, cut),
  truncated: true,
});

/** Nothing that could be long. */
const bare = (item: ItemWire) => ({
  ...cutItem({ ...item, content: [], plan: [], request: null, error: null, model: null }, CUTS[5]),
  tool: item.tool && {
    ...item.tool,
    name: "",
    title: null,
    input: null,
    output: "",
    truncated: true,
    changes: [],
  },
});

const fits = (json: string): boolean => Buffer.byteLength(json) <= FRAME_MAX - AROUND;

/** @returns the item as JSON that fits into one event. */
export const fitFrame = (item: ItemWire): string => {
  const whole = JSON.stringify(item);
  if (fits(whole)) return whole;
  for (const cut of CUTS) {
    const json = JSON.stringify(cutItem(item, cut));
    if (fits(json)) return json;
  }
  return JSON.stringify(bare(item));
};
