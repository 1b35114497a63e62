/** `platform runtimes`. Its implementation (runtimes.ts) is loaded only when it is needed. */
import { command, type Command } from "../../../cli/command.ts";
import { EXIT, Failure, usageFailure } from "../../../cli/failure.ts";
import { megabytes, localTable as table, safeLine } from "../../../cli/terminal.ts";
import type { InstalledRuntime } from "../../../sandbox/runtimes/store.ts";
import { quantity } from "../../../domain/counted.ts";

const NOTES = `Run the command on the service's machine, as its user and with its settings. The service can keep running. With several nodes, run it
on each of them. Name the runtime in PLATFORM_AGENT_RUNTIMES, so that projects may choose it.`;

/** The package of a runtime that has a record. @throws Failure */
const wishedPackage = async (text: string) => {
  const { parseNamedVersion } = await import("../../../domain/runtimes/installed.ts");
  const { PACKAGED } = await import("../../../domain/runtimes/runtimes.ts");
  const request = parseNamedVersion(text);
  const runtimePackage = PACKAGED.get(request?.name ?? "");
  if (request === null || runtimePackage === undefined)
    throw usageFailure(
      `${text} is no runtime that can be added. Give NAME@VERSION with an exact version. NAME is one of: ${[...PACKAGED.keys()].join(", ")}. For an agent of a registry, give --registry as well.`,
    );
  return { ...request, packaged: runtimePackage };
};

/** An agent of a registry. The version may be missing: a registry has one of each agent. @throws Failure */
const wishedEntry = async (text: string) => {
  const { isExactVersion, isRuntimeName } = await import("../../../domain/runtimes/installed.ts");
  const [id = "", version = null, ...rest] = text.split("@");
  if (!isRuntimeName(id) || (version !== null && !isExactVersion(version)) || rest.length > 0)
    throw usageFailure(
      `${text} is no agent of a registry. Give its id, or ID@VERSION with an exact version.`,
    );
  return { id, version };
};

const addedOutcome = (name: string, { root: _root, start: _start, ...facts }: InstalledRuntime) => ({
  json: JSON.stringify({ name, ...facts }),
  text: safeLine(
    `${name} ${facts.version} is ready: ${facts.digest}, ${quantity(facts.packages, "package")}, ${megabytes(facts.bytes)}.`,
  ),
});

const add = command({
  name: "runtimes add",
  about: "Add an agent runtime to this machine, from npm or a registry of agents",
  takes: ["NAME@VERSION"],
  options: {
    integrity: {
      value: "CHECKSUM",
      about:
        "Take the package or archive only if it has this checksum (sha512-…, for an archive also sha256:…)",
    },
    registry: {
      value: "REGISTRY",
      about: "Take NAME from this registry of agents, a file or an https address",
    },
  },
  notes: `NAME is a runtime of docs/operate/runtimes.md, and VERSION an exact version of its package. npm gets the package and all that it needs, and
compares each with its checksum. No script of a package runs. Sandboxes that start afterwards see the files below /opt/platform/runtimes. Those
that run keep the version that they have.

With --registry, NAME is the id of an agent in a registry.json of the Agent Client Protocol, and VERSION may be missing. The agent comes from npm
(npx), or from an archive whose checksum the registry or --integrity names. Offer it as acp:NAME in PLATFORM_AGENT_RUNTIMES.

${NOTES}`,
  run: async ({ given, options: { integrity = null, registry }, environment }) => {
    const text = given["NAME@VERSION"];
    const { perform } = await import("../perform.ts");
    const { addEntry, addRuntime } = await import("./runtimes.ts");
    if (registry === undefined) {
      const wish = await wishedPackage(text);
      return addedOutcome(wish.name, await perform(addRuntime(environment, { ...wish, integrity })));
    }
    const wish = await wishedEntry(text);
    return addedOutcome(wish.id, await perform(addEntry(environment, { ...wish, integrity, registry })));
  },
});

const list = command({
  name: "runtimes list",
  about: "List the agent runtimes on this machine",
  notes: NOTES,
  run: async ({ environment }) => {
    const { perform } = await import("../perform.ts");
    const { listRuntimes } = await import("./runtimes.ts");
    const namedRuntimes = await perform(listRuntimes(environment));
    const runtimes = namedRuntimes.map(({ name, tree: { version, digest, integrity, packages, bytes } }) => ({
      name,
      version,
      digest,
      integrity,
      packages,
      bytes,
    }));
    const rows = runtimes.map(({ name, version, digest, packages, bytes }) => [
      name,
      version,
      digest.slice(0, "sha256:".length + 12),
      String(packages),
      megabytes(bytes),
    ]);
    const text = table(
      ["NAME", "VERSION", "DIGEST", "PACKAGES", "SIZE"],
      rows,
      "No agent runtimes were added.",
    );
    return { json: JSON.stringify({ runtimes }), text };
  },
});

const remove = command({
  name: "runtimes remove",
  about: "Remove an agent runtime from this machine",
  asks: "Remove the runtime? Sessions that need it cannot start here any more.",
  takes: ["NAME"],
  notes: `Running sandboxes keep it. Its files are deleted at a later start of the service, once no sandbox uses them. Sessions that
need it cannot start here any more, unless their environment brings the program.`,
  run: async ({ given, environment }) => {
    const { perform } = await import("../perform.ts");
    const { removeRuntime } = await import("./runtimes.ts");
    if (!(await perform(removeRuntime(environment, given.NAME))))
      throw new Failure(EXIT.refused, "not_found", { message: `This machine has no runtime ${given.NAME}.` });
    return { json: JSON.stringify({ name: given.NAME }), text: safeLine(`${given.NAME} is removed.`) };
  },
});

export const runtimeCommands: readonly Command[] = [add, list, remove];
