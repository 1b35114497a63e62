/** `platform runtimes`. Its implementation (runtimes.ts) is loaded only when it is needed. */
import { command, type Command } from "../../command.ts";
import { EXIT, Failure, usage } from "../../failure.ts";
import { megabytes, localTable as table, visible } from "../../terminal.ts";
import { counted } from "../../../domain/counted.ts";

const NOTES = `Run the command on the service's machine, as its user and with its settings. The service can keep running. With several nodes, run it
on each of them. Name the runtime in PLATFORM_AGENT_RUNTIMES, so that projects may choose it.`;

/** @throws Failure */
const wished = async (text: string) => {
  const { parseNamedVersion } = await import("../../../domain/runtimes/installed.ts");
  const { PACKAGED } = await import("../../../domain/runtimes/runtimes.ts");
  const named = parseNamedVersion(text);
  const packaged = PACKAGED.get(named?.name ?? "");
  if (named === null || packaged === undefined)
    throw usage(
      `${text} is no runtime that can be added. Give NAME@VERSION with an exact version. NAME is one of: ${[...PACKAGED.keys()].join(", ")}.`,
    );
  return { ...named, packaged };
};

const add = command({
  name: "runtimes add",
  about: "Add an agent runtime to this machine, from npm",
  takes: ["NAME@VERSION"],
  options: {
    integrity: { value: "SHA512", about: "Take the package only if npm has this checksum for it (sha512-…)" },
  },
  notes: `NAME is a runtime of docs/operate/runtimes.md, and VERSION an exact version of its package. npm gets the package and all that it needs, and
compares each with its checksum. No script of a package runs. Sandboxes that start afterwards see the files below /opt/platform/runtimes. Those
that run keep the version that they have.

${NOTES}`,
  run: async ({ given, options: { integrity = null }, environment }) => {
    const wish = await wished(given["NAME@VERSION"]);
    const { perform } = await import("../perform.ts");
    const { addRuntime } = await import("./runtimes.ts");
    const { root: _root, ...facts } = await perform(addRuntime(environment, { ...wish, integrity }));
    return {
      json: JSON.stringify({ name: wish.name, ...facts }),
      text: visible(
        `${wish.name} ${facts.version} is ready: ${facts.digest}, ${counted(facts.packages, "package")}, ${megabytes(facts.bytes)}.`,
      ),
    };
  },
});

const list = command({
  name: "runtimes list",
  about: "List the agent runtimes on this machine",
  notes: NOTES,
  run: async ({ environment }) => {
    const { perform } = await import("../perform.ts");
    const { listRuntimes } = await import("./runtimes.ts");
    const found = await perform(listRuntimes(environment));
    const runtimes = found.map(({ name, tree: { version, digest, integrity, packages, bytes } }) => ({
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
    return { json: JSON.stringify({ name: given.NAME }), text: visible(`${given.NAME} is removed.`) };
  },
});

export const runtimeCommands: readonly Command[] = [add, list, remove];
