/**
 * `platform secrets`. A value comes from standard input or a file, because every program on the machine can see
 * arguments.
 */
import { command } from "../command.ts";
import { EXIT, Failure, usage } from "../failure.ts";
import { table, time, timeOrDash, visible } from "../terminal.ts";
import { duration, segment } from "../words.ts";

const NAME = "NAME";

const list = command({
  name: "secrets list",
  about: "List the names of a project's secrets; values are never shown",
  inProject: true,
  run: async ({ api, project }) => {
    const { value, text } = await api().call("GET /v1/projects/:pid/secrets", {
      params: { pid: await project() },
    });
    const { secrets, declared } = value;
    const rows = secrets.map(
      ({ name, updated_at: at, masked, unseen, service, previous_valid_until: until }) => [
        unseen.length === 0 ? name : `${name} (${unseen.join(", ")})`,
        time(at),
        service ? "no" : "yes",
        masked ? "yes" : "no",
        timeOrDash(until),
      ],
    );
    const missing = declared.missing.map((name) => visible(`missing: ${name}`));
    const columns = ["NAME", "CHANGED", "FOR AGENTS", "MASKED IN LOGS", "PREVIOUS UNTIL"];
    return {
      json: text,
      text: [table(columns, rows, "No secrets."), ...missing].join("\n"),
    };
  },
});

const set = command({
  name: "secrets set",
  about: "Set a secret; its value comes from standard input or a file",
  takes: [NAME],
  inProject: true,
  options: {
    file: { value: "FILE", about: "Take the value from this file" },
    exact: { about: "Keep a line end at the end of the value" },
    "previous-valid": {
      value: "TIME",
      about: "Keep the previous value valid for this long: 90s, 30m, 24h, up to 7d",
    },
    service: { about: "Keep it to the service, which verifies webhooks with it; no agent gets it" },
  },
  notes:
    "One line end at the end of the file or of standard input is removed. At a terminal, the command asks for the value.",
  run: async ({
    given,
    options: { file, exact, service, "previous-valid": previous },
    input,
    api,
    project,
  }) => {
    const name = segment(given.NAME, NAME);
    const previousMs = previous === undefined ? undefined : duration(previous, "--previous-valid");
    // The project comes first, so that an error in it comes before a person types the secret.
    const pid = await project();
    const value = await secretValue();
    if (value === "") throw usage("The value is empty.");
    const { value: stored, text } = await api().call("PUT /v1/projects/:pid/secrets/:name", {
      params: { pid, name },
      payload: {
        value,
        ...(service && { service }),
        ...(previousMs !== undefined && { previous_valid_ms: previousMs }),
      },
    });
    const until = stored.previous_valid_until;
    const also = until === null ? "" : `; its previous value stays valid until ${time(until)}`;
    const warnings = [
      ...(stored.masked ? [] : [". The value is shorter than 6 bytes, so it is not masked in logs."]),
      ...stored.unseen.map((note) => `. The value ${note}`),
    ];
    return { json: text, text: visible(`${name} is set${also}${warnings.join("")}`) };

    async function secretValue(): Promise<string> {
      if (file === undefined && input.isTerminal)
        return await input.hiddenLine(`Value of ${visible(name)} (not shown): `);
      const content = file === undefined ? await input.all() : await input.file(file, "--file");
      return exact ? content : content.replace(/\r?\n$/, "");
    }
  },
});

const remove = command({
  name: "secrets delete",
  about: "Delete a secret",
  asks: "Delete the secret?",
  takes: [NAME],
  inProject: true,
  run: async ({ given, api, project }) => {
    const name = segment(given.NAME, NAME);
    const { text } = await api().call("DELETE /v1/projects/:pid/secrets/:name", {
      params: { pid: await project(), name },
    });
    return { json: text, text: visible(`${name} deleted`) };
  },
});

const tryIt = command({
  name: "secrets try",
  about: "Ask a model provider whether it accepts the key that is stored under this name",
  takes: [NAME],
  inProject: true,
  notes:
    "Ends with 1 if the provider rejects the key, and with 6 if it cannot be reached or says nothing about the key.",
  run: async ({ given, api, project, json, write }) => {
    const name = segment(given.NAME, NAME);
    const { value, text } = await api().call("POST /v1/projects/:pid/secrets/:name/try", {
      params: { pid: await project(), name },
    });
    const { outcome, message, advice } = value;
    const shown = visible(advice === null ? message : `${message} ${advice}`);
    if (outcome === "accepted") return { json: text, text: shown };
    write(`${json ? text : shown}\n`);
    throw outcome === "rejected"
      ? new Failure(EXIT.refused, "key_rejected", { message: `The provider rejects ${name}.` })
      : new Failure(EXIT.tryAgain, "key_unknown", {
          message: `The provider gave no answer about ${name}, so it is not known whether the key works.`,
        });
  },
});

export const secretCommands = [list, set, tryIt, remove];
