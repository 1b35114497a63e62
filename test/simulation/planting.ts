/**
 * Plants a bug: one named replacement of text in one module of the real code, as Node loads it. The planted program is a
 * module graph of its own beside the clean one (its addresses carry the bug's name), so that one process runs both.
 */
import { registerHooks } from "node:module";
import type { Edit, Plant } from "./plants.ts";
import type { simulate } from "./run.ts";

const ROOT = new URL("../../", import.meta.url).href;
const OURS = [`${ROOT}src/`, `${ROOT}test/`];
const MARK = "planted";

const isOurs = (url: string): boolean => OURS.some((place) => url.startsWith(place));

const plantOf = (url: string | undefined): string | null =>
  url === undefined || !isOurs(url) ? null : new URL(url).searchParams.get(MARK);

/** All places of the bug. */
export const editsOf = (plant: Plant): readonly Edit[] => [plant, ...(plant.more ?? [])];

/** The source with the edit in it; the edit is an error if its place is not found exactly once. */
export const planted = (source: string, { find, put }: Edit): string => {
  const parts = source.split(find);
  if (parts.length !== 2) throw new Error(`${find}: it occurs ${parts.length - 1} times, not once`);
  return parts.join(put);
};

const known = new Map<string, Plant>();
let isHooked = false;

const hook = (): void => {
  if (isHooked) return;
  isHooked = true;
  registerHooks({
    resolve: (specifier, context, nextResolve) => {
      const resolved = nextResolve(specifier, context);
      const name = plantOf(context.parentURL);
      if (name === null || !isOurs(resolved.url)) return resolved;
      return { ...resolved, url: `${resolved.url}?${MARK}=${name}` };
    },
    load: (url, context, nextLoad) => {
      const loaded = nextLoad(url, context);
      const plant = known.get(plantOf(url) ?? "");
      const edits = plant === undefined ? [] : editsOf(plant);
      const own = edits.filter(({ file }) => url.startsWith(`${ROOT}${file}?`));
      if (own.length === 0) return loaded;
      const clean = Buffer.from(loaded.source as Uint8Array).toString("utf8");
      return { ...loaded, source: own.reduce(planted, clean) };
    },
  });
};

/** The simulation of the program that has this bug. */
export const simulationWith = async (plant: Plant): Promise<typeof simulate> => {
  hook();
  known.set(plant.name, plant);
  const module = (await import(`${ROOT}test/simulation/run.ts?${MARK}=${plant.name}`)) as {
    readonly simulate: typeof simulate;
  };
  return module.simulate;
};
