/**
 * `platform secrets`. A value comes from standard input or a file, because every program on the machine can see
 * arguments.
 */
import { endpoint } from "../endpoint/endpoint.ts";
import { EXIT, Failure, usageFailure } from "../failure.ts";
import { time, safeLine } from "../terminal.ts";
import { duration } from "../words.ts";

export const secretCommands = [
  endpoint("GET /v1/projects/:pid/secrets", {
    name: "secrets list",
    about: "List the names of a project's secrets; values are never shown",
    rows: "secrets",
    columns: {
      NAME: ({ name, unseen }) => (unseen.length === 0 ? name : `${name} (${unseen.join(", ")})`),
      CHANGED: "updated_at",
      "FOR AGENTS": ({ service }) => (service ? "no" : "yes"),
      "MASKED IN LOGS": ({ masked }) => (masked ? "yes" : "no"),
      "PREVIOUS UNTIL": ({ previous_valid_until: until }) => until && time(until),
    },
    none: "No secrets.",
    below: ({ declared }) => declared.missing.map((name) => `missing: ${name}`),
  }),
  endpoint("PUT /v1/projects/:pid/secrets/:name", {
    name: "secrets set",
    about: "Set a secret; its value comes from standard input or a file",
    takes: ["NAME"],
    options: {
      file: { value: "FILE", about: "Take the value from this file", sets: null },
      exact: { about: "Keep a line end at the end of the value", sets: null },
      "previous-valid": {
        value: "TIME",
        about: "Keep the previous value valid for this long: 90s, 30m, 24h, up to 7d",
        sets: "previous_valid_ms",
        reads: duration,
      },
      service: { about: "Keep it to the service, which verifies webhooks with it; no agent gets it" },
    },
    notes:
      "One line end at the end of the file or of standard input is removed. At a terminal, the command asks for the value.",
    sends: async ({ given: { NAME }, options: { file, exact }, input, project }) => {
      // A wrong project is an error before a person types.
      await project();
      const content = await input.secret(`Value of ${safeLine(NAME)} (not shown): `, file, "--file");
      const value = exact ? content : content.replace(/\r?\n$/, "");
      if (value === "") throw usageFailure("The value is empty.");
      return { payload: { value } };
    },
    shows: ({ previous_valid_until: until, masked, unseen }, { given }) => {
      const also = until === null ? "" : `; its previous value stays valid until ${time(until)}`;
      const warnings = [
        ...(masked ? [] : [". The value is shorter than 6 bytes, so it is not masked in logs."]),
        ...unseen.map((note) => `. The value ${note}`),
      ];
      return safeLine(`${given.NAME} is set${also}${warnings.join("")}`);
    },
  }),
  endpoint("POST /v1/projects/:pid/secrets/:name/try", {
    name: "secrets try",
    about: "Ask a model provider whether it accepts the key that is stored under this name",
    takes: ["NAME"],
    notes:
      "Ends with 1 if the provider rejects the key, and with 6 if it cannot be reached or says nothing about the key.",
    shows: ({ message, advice }) => safeLine(advice === null ? message : `${message} ${advice}`),
    fails: ({ outcome }, { given: { NAME } }) => {
      if (outcome === "accepted") return null;
      return outcome === "rejected"
        ? new Failure(EXIT.refused, "key_rejected", { message: `The provider rejects ${NAME}.` })
        : new Failure(EXIT.tryAgain, "key_unknown", {
            message: `The provider gave no answer about ${NAME}, so it is not known whether the key works.`,
          });
    },
  }),
  endpoint("DELETE /v1/projects/:pid/secrets/:name", {
    name: "secrets delete",
    about: "Delete a secret",
    asks: "Delete the secret?",
    takes: ["NAME"],
    done: "deleted",
  }),
];
