/** A conversation as the page shows it: entries in the agent's order, with a head and a foot for each of its turns. It uses no document. */
import { addUsage, type Item } from "./reading/model.ts";
import type { Usage } from "../wire.d.ts";

/** How much the agent changed, as far as its tools tell. */
interface Changes {
  readonly files: number;
  /** Null: not every change came with its lines. */
  readonly lines: { readonly added: number; readonly removed: number } | null;
}

export interface TurnHead {
  /** The agent that the message before chose. Null: the session's. */
  readonly agent: string | null;
  readonly model: string | null;
  readonly at: string;
}

export interface TurnFoot {
  /** The turn's. Null: no message began it. */
  readonly id: string | null;
  /** Null: its beginning was not read. */
  readonly durationMs: number | null;
  readonly usage: Usage | null;
  readonly changes: Changes | null;
}

export interface Entry {
  /** The id of its first item. */
  readonly id: string;
  /** More than one: reads and searches that are folded into one line. */
  readonly items: readonly Item[];
  /** The first entry of a turn has its head, and the last one its foot. */
  readonly head: TurnHead | null;
  readonly foot: TurnFoot | null;
}

const isAgents = (item: Item): boolean => item.kind !== "note" && item.role !== "user";

const canFold = ({ kind, tool, status }: Item): boolean =>
  kind === "tool" &&
  (tool?.kind === "read" || tool?.kind === "search") &&
  (status === "completed" || status === "running" || status === "pending");

/** Items that stand in one entry: two or more reads and searches of the same agent in a row. */
const folded = (items: readonly Item[]): readonly (readonly [Item, ...Item[]])[] => {
  const all: [Item, ...Item[]][] = [];
  for (const item of items) {
    const last = all.at(-1);
    if (last !== undefined && canFold(item) && canFold(last[0]) && last[0].parent_id === item.parent_id)
      last.push(item);
    else all.push([item]);
  }
  return all;
};

/** The items of one turn of the agent, and the message before them. */
interface Turn {
  readonly prompt: Item | null;
  readonly items: Item[];
}

const begins = (turn: Turn | null, item: Item, prompt: Item | null): boolean => {
  if (turn === null || turn.prompt !== prompt) return true;
  const before = turn.items.findLast(({ turn_id: id }) => id !== null)?.turn_id ?? null;
  return before !== null && item.turn_id !== null && before !== item.turn_id;
};

const turnsOf = (items: readonly Item[]): readonly Turn[] => {
  const turns: Turn[] = [];
  let prompt: Item | null = null;
  for (const item of items) {
    if (item.kind === "message" && item.role === "user") prompt = item;
    if (!isAgents(item)) continue;
    const last: Turn | null = turns.at(-1) ?? null;
    if (last !== null && !begins(last, item, prompt)) last.items.push(item);
    else turns.push({ prompt, items: [item] });
  }
  return turns;
};

/** The lines of a patch that begin with a sign, without the names of its files. */
const signed = (patch: string, sign: "+" | "-"): number =>
  patch.split("\n").filter((line) => line.startsWith(sign) && !line.startsWith(sign.repeat(3) + " ")).length;

const changesIn = (items: readonly Item[]): Changes | null => {
  const changes = items.flatMap(({ tool }) => tool?.changes ?? []);
  if (changes.length === 0) return null;
  const patches = changes.map(({ patch }) => patch);
  const count = (sign: "+" | "-"): number =>
    patches.reduce((all, patch) => all + (patch === null ? 0 : signed(patch, sign)), 0);
  return {
    files: new Set(changes.map(({ path }) => path)).size,
    lines: patches.includes(null) ? null : { added: count("+"), removed: count("-") },
  };
};

const headOf = ({ prompt, items }: Turn): TurnHead => ({
  agent: prompt?.agent ?? null,
  model: items.find(({ model }) => model !== null)?.model ?? prompt?.model ?? null,
  at: items[0]?.created_at ?? "",
});

const footOf = ({ items }: Turn, isCut: boolean): TurnFoot => {
  const ends = items.flatMap(({ completed_at: at }) => (at === null ? [] : [Date.parse(at)]));
  const spent = items.flatMap(({ usage }) => (usage === null ? [] : [usage]));
  return {
    id: items.findLast(({ turn_id: id }) => id !== null)?.turn_id ?? null,
    durationMs:
      isCut || ends.length === 0 ? null : Math.max(...ends) - Date.parse(items[0]?.created_at ?? ""),
    usage: isCut || spent.length === 0 ? null : spent.reduce(addUsage),
    changes: isCut ? null : changesIn(items),
  };
};

const hasContent = ({ durationMs, usage, changes }: TurnFoot): boolean =>
  durationMs !== null || usage !== null || changes !== null;

/**
 * The entries of a conversation, oldest first.
 *
 * @param items in their order
 * @param known isAtWork: the last turn has no end yet; isCut: items before the first one were not read
 */
export const entriesOf = (
  items: readonly Item[],
  { isAtWork, isCut }: { readonly isAtWork: boolean; readonly isCut: boolean },
): readonly Entry[] => {
  const heads = new Map<Item, TurnHead>();
  const feet = new Map<Item, TurnFoot>();
  const turns = turnsOf(items);
  for (const [at, turn] of turns.entries()) {
    const [first, last] = [turn.items[0], turn.items.at(-1)];
    if (first === undefined || last === undefined) continue;
    heads.set(first, headOf(turn));
    if (isAtWork && at === turns.length - 1) continue;
    const foot = footOf(turn, isCut && turn.prompt === null);
    if (hasContent(foot)) feet.set(last, foot);
  }
  return folded(items).map((group) => ({
    id: group[0].id,
    items: group,
    head: heads.get(group[0]) ?? null,
    foot: feet.get(group.at(-1) ?? group[0]) ?? null,
  }));
};

const isSameRecord = (a: object | null, b: object | null): boolean =>
  a === b || JSON.stringify(a) === JSON.stringify(b);

/** Whether both look alike: then an entry is not drawn again. */
export const isSameEntry = (a: Entry, b: Entry): boolean =>
  a === b ||
  (a.items.length === b.items.length &&
    a.items.every((item, index) => item === b.items[index]) &&
    isSameRecord(a.head, b.head) &&
    isSameRecord(a.foot, b.foot));
