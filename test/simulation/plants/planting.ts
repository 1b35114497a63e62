/**
 * Plants a bug: one named replacement of text in one module of the real code, as Node loads it. The changed modules and
 * all that import them exist a second time beside the clean ones (their addresses carry the bug's name), so that one
 * process runs both programs. All other modules are shared: no bug reaches them.
 */
import { existsSync, readFileSync } from "node:fs";
import { registerHooks, stripTypeScriptTypes } from "node:module";
import type { Edit, Plant } from "../plants.ts";
import type { simulate } from "../run.ts";

const ROOT = new URL("../../../", import.meta.url).href;
const OURS = [`${ROOT}src/`, `${ROOT}test/`];
const MARK = "planted";
/** The module that runs the simulation. */
const PROGRAM = `${ROOT}test/simulation/run.ts`;

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

const sources = new Map<string, string>();

/** The text of one of our modules. */
const sourceOf = (url: string): string => {
  const source = sources.get(url) ?? readFileSync(new URL(url), "utf8");
  sources.set(url, source);
  return source;
};

/** What an import may look like. More than is imported is no fault: then a module is loaded again that could be shared. */
const IMPORTED = /\b(?:from|import)\s*\(?\s*"(\.[^"]+)"/g;

/** By module of the program: the modules that import it. */
const importersOf = (): ReadonlyMap<string, ReadonlySet<string>> => {
  const importers = new Map<string, Set<string>>([[PROGRAM, new Set()]]);
  for (const [url] of importers)
    for (const [, specifier = ""] of sourceOf(url).matchAll(IMPORTED)) {
      const imported = new URL(specifier, url);
      if (!isOurs(imported.href) || !existsSync(imported)) continue;
      importers.set(imported.href, (importers.get(imported.href) ?? new Set()).add(url));
    }
  return importers;
};

let importers: ReturnType<typeof importersOf> | null = null;

/** The modules that are not the clean program's: those of the edits, and all that import them. */
const changedBy = (plant: Plant): ReadonlySet<string> => {
  importers ??= importersOf();
  const changed = new Set(editsOf(plant).map(({ file }) => `${ROOT}${file}`));
  for (const url of changed) for (const importer of importers.get(url) ?? []) changed.add(importer);
  if (!changed.has(PROGRAM)) throw new Error(`${plant.name}: the simulation does not load ${plant.file}`);
  return changed;
};

const stripped = new Map<string, string>();

/** As JavaScript. Each module is stripped once, and not again for each bug. */
const strippedOf = (url: string): string => {
  const code = stripped.get(url) ?? stripTypeScriptTypes(sourceOf(url));
  stripped.set(url, code);
  return code;
};

interface Planting {
  readonly edits: readonly Edit[];
  readonly changed: ReadonlySet<string>;
}

const known = new Map<string, Planting>();
let isHooked = false;

const hook = (): void => {
  if (isHooked) return;
  isHooked = true;
  registerHooks({
    resolve: (specifier, context, nextResolve) => {
      const resolved = nextResolve(specifier, context);
      const name = plantOf(context.parentURL);
      if (name === null || known.get(name)?.changed.has(resolved.url) !== true) return resolved;
      return { ...resolved, url: `${resolved.url}?${MARK}=${name}` };
    },
    load: (url, context, nextLoad) => {
      const planting = known.get(plantOf(url) ?? "");
      if (planting === undefined) return nextLoad(url, context);
      const [clean = url] = url.split("?");
      const own = planting.edits.filter(({ file }) => clean === `${ROOT}${file}`);
      const source =
        own.length === 0 ? strippedOf(clean) : stripTypeScriptTypes(own.reduce(planted, sourceOf(clean)));
      return { format: "module", source, shortCircuit: true };
    },
  });
};

/** The simulation of the program that has this bug. */
export const simulationWith = async (plant: Plant): Promise<typeof simulate> => {
  hook();
  known.set(plant.name, { edits: editsOf(plant), changed: changedBy(plant) });
  const module = (await import(`${PROGRAM}?${MARK}=${plant.name}`)) as {
    readonly simulate: typeof simulate;
  };
  return module.simulate;
};
