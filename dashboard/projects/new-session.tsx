/** A new session: what the agent is told, and on which branch, as which agent and with which model it works. */
import { useState } from "react";
import type { Answer } from "../../src/cli/contract.ts";
import { orNull, request } from "../api/client.ts";
import type { Project } from "../api/projects.ts";
import { FieldGroup, FileField, Form, TextField } from "../ui/form.tsx";
import { framedPage } from "../ui/framed-page.tsx";
import { headOf } from "./head.tsx";
import { isArchived } from "./project.ts";
import { AGENT_HINT, draftName, PROMPT, runtimeWords, startIn, warmSandbox } from "./start.ts";

interface Shown {
  readonly project: Project;
  /** Null: they cannot be read now. */
  readonly options: Answer<"GET /v1/projects/:pid/session-options"> | null;
}

const AgentFields = ({ options }: Pick<Shown, "options">) => (
  <FieldGroup title="Agent and model">
    <TextField
      name="agent_name"
      label="Agent"
      hint={AGENT_HINT}
      placeholder="default"
      suggestions={(options?.agent_choices ?? []).map((agent) => [agent.name, runtimeWords(agent)])}
      mono
    />
    <TextField
      name="agent_model"
      label="Model"
      hint="Optional. In the form `provider/model`, or as the agent's runtime names it."
      placeholder={options?.default_model ?? "provider/model"}
      suggestions={options?.models ?? []}
      mono
    />
  </FieldGroup>
);

const StartForm = ({ project: { id: pid, default_branch: branch }, options }: Shown) => {
  const [files, setFiles] = useState<readonly File[]>([]);
  const start = async (typed: Readonly<Record<string, string>>): Promise<void> => {
    location.hash = (await startIn(pid, typed, files)) ?? "#/";
  };
  return (
    <Form
      entry="start-session"
      submit="Start session"
      sending="Starting…"
      keeps={draftName(pid)}
      onWrite={() => warmSandbox(pid)}
      onSend={start}
    >
      <TextField {...PROMPT} hint="Optional. Without it, the agent waits for your first message." />
      <FileField
        name="files"
        label="Files for the agent"
        hint="Optional. Images, logs, specifications: at most 10, 10 MiB each."
        onChoose={setFiles}
      />
      <TextField name="name" label="Name" hint="Optional. It is shown in lists." />
      <TextField
        name="base_ref"
        label="Start from"
        hint="Optional. A branch, a tag or a commit. The session gets a branch of its own."
        placeholder={branch}
        suggestions={options?.branches ?? []}
        mono
      />
      <AgentFields options={options} />
    </Form>
  );
};

const NewSession = ({ data }: { readonly data: Shown }) => (
  <>
    <h2>New session</h2>
    {!isArchived(data.project) && <StartForm {...data} />}
  </>
);

export const newSession = framedPage<Shown>({
  load: async ([pid = ""]) => {
    const params = { pid };
    const [project, options] = await Promise.all([
      request("GET /v1/projects/:pid", { params }),
      // Without them the form is still of use.
      orNull(request("GET /v1/projects/:pid/session-options", { params }), [404, 409, 503]),
    ]);
    return { project, options };
  },
  title: ({ project }) => `New session in ${project.name}`,
  head: headOf(null),
  Body: NewSession,
});
