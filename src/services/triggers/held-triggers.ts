/**
 * The trigger definitions of one project, packed: a service may hold a million of them, and needs few at a time.
 *
 *  G1 A definition that is read is equal to the one that was packed.
 *  G2 To find one, only the part that its slug belongs to is unpacked, whatever the number of triggers.
 *  G3 Unpacked parts stay in memory while they are used, up to a limit for the whole service.
 */
import { deflateRawSync, inflateRawSync } from "node:zlib";
import { BoundedMap } from "../../ground/bounded-map.ts";
import type { TriggerDefinition } from "../../domain/trigger/trigger.ts";

/** How many definitions a part has on average. One of 32 takes 0.05 ms to unpack. */
const PART_SIZE = 32;
/** The limit for unpacked parts, in characters of their JSON. */
const UNPACKED_CHARS = 16 * 1024 * 1024;
/** zlib's fastest: a higher level takes twice the time at a start. */
const LEVEL = 1;

/** A definition, with its place among the project's. */
type Placed = readonly [place: number, definition: TriggerDefinition];
type Found = ReadonlyMap<string, TriggerDefinition>;

/** The parts that were read last, of all projects. */
export class UnpackedTriggers {
  /** By the packed part, the one that was read last at the end. Equal parts have equal definitions. */
  readonly #parts: BoundedMap<string, { readonly found: Found; readonly chars: number }>;

  constructor(limit = UNPACKED_CHARS) {
    this.#parts = new BoundedMap(limit, ({ chars }) => chars);
  }

  /** How many characters are held. */
  get chars(): number {
    return this.#parts.weight;
  }

  read(packedText: string): Found {
    const cachedPart = this.#parts.use(packedText);
    if (cachedPart !== undefined) return cachedPart.found;
    const text = unpack(packedText);
    const bySlug = new Map(parsePlaced(text).map(([, definition]) => [definition.slug, definition]));
    this.#parts.set(packedText, { found: bySlug, chars: text.length });
    return bySlug;
  }
}

export class HeldTriggers {
  /** How many there are. */
  readonly size: number;
  readonly #parts: readonly string[];
  readonly #unpacked: UnpackedTriggers;

  /** @param definitions in the manifest's order, each slug once */
  constructor(definitions: readonly TriggerDefinition[], cache: UnpackedTriggers) {
    this.size = definitions.length;
    this.#unpacked = cache;
    const parts = Array.from({ length: Math.ceil(this.size / PART_SIZE) }, (): Placed[] => []);
    for (const [place, definition] of definitions.entries())
      parts[partIndex(definition.slug, parts.length)]?.push([place, definition]);
    this.#parts = parts.map((part) => pack(JSON.stringify(part)));
  }

  get(slug: string): TriggerDefinition | undefined {
    const part = this.#parts[partIndex(slug, this.#parts.length)];
    return part === undefined ? undefined : this.#unpacked.read(part).get(slug);
  }

  /** All of them, in the manifest's order. Unpacked anew at each call: 1,000 definitions take 2 ms. */
  get all(): readonly TriggerDefinition[] {
    return this.#parts
      .flatMap((part) => parsePlaced(unpack(part)))
      .toSorted(([one], [other]) => one - other)
      .map(([, definition]) => definition);
  }
}

const parsePlaced = (text: string): readonly Placed[] => JSON.parse(text) as readonly Placed[];

/** One byte a character: a string of its own takes less memory than a buffer. */
const pack = (text: string): string => deflateRawSync(text, { level: LEVEL }).toString("latin1");
const unpack = (text: string): string => inflateRawSync(Buffer.from(text, "latin1")).toString();

/** A slug is ASCII. FNV-1a spreads slugs that differ in few characters. */
const partIndex = (slug: string, parts: number): number => {
  let hash = 0x811c9dc5;
  for (let index = 0; index < slug.length; index += 1)
    hash = Math.imul(hash ^ slug.charCodeAt(index), 0x01000193);
  return (hash >>> 0) % parts;
};
