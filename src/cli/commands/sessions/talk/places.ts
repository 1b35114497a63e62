/**
 * Where the written items stand in the conversation. Written text stays where it is: if an item moves behind another one that was
 * written meanwhile, a line says so.
 */
import { contentText } from "../../../../domain/conversation/growing.ts";
import { cutToWidth, safeLine } from "../../../terminal.ts";
import type { Item } from "../agent-requests.ts";

/** How much of an item names it. */
const NAME_MAX = 60;

/** @returns in one line, safe for a terminal */
const name = (item: Item): string => {
  const text = item.tool === null ? contentText(item) : (item.tool.title ?? item.tool.name);
  return cutToWidth(safeLine(text.trim().replaceAll(/\s+/g, " ")), NAME_MAX);
};

export class Places {
  readonly #places = new Map<string, number>();

  /**
   * Takes the place of a written item.
   *
   * @returns the line for one that was written before and has moved behind another, or null if its place is unchanged
   */
  take(item: Item): string | null {
    const former = this.#places.get(item.id);
    this.#places.set(item.id, item.place);
    if (former === undefined || item.kind === "thought") return null;
    const isBehind = [...this.#places.values()].some((other) => other > former && other < item.place);
    return isBehind ? `(“${name(item)}” belongs here, after what was said meanwhile.)` : null;
  }
}
