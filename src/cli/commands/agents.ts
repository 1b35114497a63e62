/** `platform sessions agents`: the agents of a project, each with its runtime. */
import { command } from "../command.ts";
import { table } from "../terminal.ts";

export const agents = command({
  name: "sessions agents",
  about: "List the agents that a session may have, with their runtimes",
  inProject: true,
  notes: "An agent is a table in platform.toml, or a file in the agent config directory.",
  run: async ({ api, project }) => {
    const { value, text } = await api().call("GET /v1/projects/:pid/session-options", {
      params: { pid: await project() },
    });
    const rows = value.agent_choices.map(
      ({ name, runtime, model, mode, effort, permissions, fallback, problem }) => [
        name,
        runtime ?? "cannot start",
        model ?? "-",
        mode ?? "-",
        effort ?? "-",
        permissions ?? "-",
        fallback.join(", ") || "-",
        problem ?? "",
      ],
    );
    return {
      json: text,
      text: table(
        ["AGENT", "RUNTIME", "MODEL", "MODE", "EFFORT", "PERMISSIONS", "FALLBACK", "PROBLEM"],
        rows,
        "No agents.",
      ),
    };
  },
});
