/** `platform git-credential`: git asks it for the token of the service's repositories (gitcredentials(7)). */
import { command } from "../command.ts";
import { connectionFrom } from "../configuration.ts";

export const gitCredential = command({
  name: "git-credential",
  about: "Give git your token for the service's repositories: `sessions checkout` makes git call it",
  takes: ["ACTION"],
  notes:
    "git writes what it asks for to standard input. Only `get` for the service's own address is answered.",
  run: async ({ given, input, environment }) => {
    const { apiUrl, token } = connectionFrom(environment);
    const { protocol, host } = new URL(apiUrl);
    const fields = new Map(
      (await input.all())
        .split("\n")
        .map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
    );
    const isOurs = `${fields.get("protocol") ?? ""}:` === protocol && fields.get("host") === host;
    const answer = given.ACTION === "get" && isOurs ? { username: "platform", password: token } : {};
    const text = Object.entries(answer)
      .map((pair) => pair.join("="))
      .join("\n");
    return { json: JSON.stringify(answer), text };
  },
});
