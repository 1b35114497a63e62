/**
 * `platform subscriptions`: a person's own subscriptions at the makers of agent runtimes. A token comes from standard input, and a file by its
 * path: every program on the machine can see arguments.
 */
import type { Answer } from "../../cli/contract.ts";
import { command } from "../../cli/command.ts";
import { usage } from "../../cli/failure.ts";
import { fields, table, timeOrDash, visible } from "../../cli/terminal.ts";

const RUNTIME = "RUNTIME";

type Listed = Answer<"GET /v1/me/subscriptions">;
type Possible = Listed["possible"][number];

const howTo = ({ runtime, title, how, file }: Possible): string =>
  file === null
    ? `${title}: run ${how}, then: platform subscriptions save ${runtime}`
    : `${title}: run ${how}, then: platform subscriptions save ${runtime} --file ~/${file}`;

const list = command({
  name: "subscriptions list",
  about: "List your own subscriptions, and how to save one; their contents are never shown",
  run: async ({ api }) => {
    const { value, text } = await api().call("GET /v1/me/subscriptions", {});
    const rows = value.subscriptions.map((one) => [
      one.runtime,
      one.title,
      timeOrDash(one.saved_at),
      timeOrDash(one.renewed_at),
      timeOrDash(one.used_at),
    ]);
    const columns = ["RUNTIME", "SUBSCRIPTION", "SAVED", "RENEWED", "USED"];
    const kept = new Set(value.subscriptions.map(({ runtime }) => runtime));
    const others = value.possible
      .filter(({ runtime }) => !kept.has(runtime))
      .map((one) => visible(howTo(one)));
    return { json: text, text: [table(columns, rows, "No subscriptions."), ...others].join("\n") };
  },
});

const save = command({
  name: "subscriptions save",
  about: "Save your own subscription for a runtime: a token from standard input, or a file",
  takes: [RUNTIME],
  options: { file: { value: "FILE", about: "Take the file's content" } },
  notes:
    "Only sessions that you start use it, while you alone steer them. It is not tried: the first turn says whether the maker takes it.",
  run: async ({ given, options: { file }, input, api }) => {
    const content =
      file !== undefined
        ? await input.file(file, "--file")
        : input.isTerminal
          ? await input.hiddenLine("Token (not shown): ")
          : await input.all();
    if (content.trim() === "") throw usage("The token or the file is empty.");
    const { value, text } = await api().call("PUT /v1/me/subscriptions/:runtime", {
      params: { runtime: given.RUNTIME },
      payload: { content },
    });
    return {
      json: text,
      text: fields([
        ["runtime", value.runtime],
        ["subscription", value.title],
        ["saved", timeOrDash(value.saved_at)],
      ]),
    };
  },
});

const remove = command({
  name: "subscriptions remove",
  about: "Remove your own subscription. It is taken out of your running sessions",
  asks: "Remove the subscription?",
  takes: [RUNTIME],
  run: async ({ given, api }) => {
    const { text } = await api().call("DELETE /v1/me/subscriptions/:runtime", {
      params: { runtime: given.RUNTIME },
    });
    return { json: text, text: visible(`${given.RUNTIME} removed`) };
  },
});

export const subscriptionCommands = [list, save, remove];
