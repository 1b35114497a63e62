/** The images in registries from which a Dockerfile builds: its base images, and those from which it copies files. */
import { taggedReference } from "../domain/environment/registry-reference.ts";
import {
  type Dockerfile,
  type Instruction,
  fromReference,
  type Stage,
} from "../domain/environment/dockerfile.ts";

/** A Dockerfile with more is built all the same. The rest is not looked up. */
export const BASES_MAX = 20;

const FILES = /^(?:oci|oci-archive|docker-archive|docker-daemon|dir|containers-storage|sif):|^[./]/;

const VARIABLE = /\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?:(:?[-+])([^}]*))?\})/g;

/** Replaces variables as the builder does. @returns null if one has no value that is known here */
const expand = (text: string, values: ReadonlyMap<string, string>): string | null => {
  let isKnown = true;
  const result = text.replaceAll(VARIABLE, (...groups) => {
    const [, plain, braced, form = "", word = ""] = groups as readonly (string | undefined)[];
    const value = values.get(plain ?? braced ?? "");
    const isSet = value !== undefined && (value !== "" || !form.startsWith(":"));
    if (form.endsWith("-")) return isSet ? value : word;
    if (form.endsWith("+")) return isSet ? word : "";
    isKnown &&= isSet;
    return value ?? "";
  });
  return isKnown ? result : null;
};

const unquote = (text: string): string => /^(["'])(.*)\1$/.exec(text)?.[2] ?? text;

/** The ARGs before the first FROM: the only ones that a FROM sees. */
const globalArgs = (
  globals: readonly Instruction[],
  args: Readonly<Record<string, string>>,
): ReadonlyMap<string, string> => {
  const values = new Map<string, string>();
  for (const { text } of globals)
    for (const word of text.split(/\s+/).slice(1)) {
      const [name = "", value = null] = word.split(/=(.*)/s);
      const own = args[name] ?? (value === null ? null : expand(unquote(value), values));
      if (own !== null) values.set(name, own);
    }
  return values;
};

/** The names in `--from=` of COPY, and in `from=` of a step's mounts. */
const copiedFrom = ({ keyword, text }: Instruction): readonly string[] => {
  if (keyword === "COPY") return [/\s--from=(\S+)/.exec(text)?.[1] ?? ""];
  if (keyword !== "RUN") return [];
  return [...text.matchAll(/\s--mount=(\S+)/g)].map(
    ([, mount = ""]) => /(?:^|,)from=([^,]+)/.exec(mount)?.[1] ?? "",
  );
};

const stageName = ({ text }: Instruction): string => /\sAS\s+(\S+)\s*$/i.exec(text)?.[1]?.toLowerCase() ?? "";

/** The stages up to the one that is built. */
const builtStages = (stages: readonly Stage[], target: string | null): readonly Stage[] => {
  const end = stages.findIndex(([from]) => target !== null && stageName(from) === target.toLowerCase());
  return end === -1 ? stages : stages.slice(0, end + 1);
};

/**
 * The tags from which a Dockerfile builds, each once, as full references. Left out are digests, other stages, and what is in no registry.
 * @param options.target the stage that is built. Null means the last one
 */
export const namedBases = (
  { globals, stages }: Pick<Dockerfile, "globals" | "stages">,
  { target, args }: { readonly target: string | null; readonly args: Readonly<Record<string, string>> },
): readonly string[] => {
  const values = globalArgs(globals, args);
  const bases = new Set<string>();
  const names = new Set(["scratch"]);
  const add = (text: string | null): void => {
    if (text === null || names.has(text.toLowerCase()) || /^\d+$/.test(text)) return;
    // Archives and layouts are files, without a tag in a registry.
    const reference = FILES.test(text) ? null : taggedReference(text.replace(/^docker:\/\//, ""));
    if (reference !== null) bases.add(reference.text);
  };
  for (const [from, ...steps] of builtStages(stages, target)) {
    add(expand(unquote(fromReference(from)), values));
    // A stage may copy from itself only by mistake, which the builder reports.
    names.add(stageName(from));
    for (const name of steps.flatMap(copiedFrom)) if (!name.includes("$")) add(name);
  }
  return [...bases].slice(0, BASES_MAX);
};
