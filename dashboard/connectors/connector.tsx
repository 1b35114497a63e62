/** One connector of a project: its tools, and what changed in them since they were accepted. */
import type { Answer } from "../../src/cli/contract.ts";
import { request } from "../api/client.ts";
import type { Project } from "../api/projects.ts";
import { projectLink } from "../elements/parts.ts";
import { counted } from "../elements/format.ts";
import { notice } from "../frame/notices.ts";
import { RoleAct } from "../ui/act.tsx";
import { framedPage } from "../ui/framed-page.tsx";
import { Callout, CopyBlock, Detail, Empty, Row, Tag, Time, Trail } from "../ui/parts.tsx";
import { type Connector, forget, type Named, refresh } from "./access.tsx";

type Catalogue = Answer<"GET /v1/projects/:pid/connectors/:slug/catalogue">;
type Tool = Catalogue["tools"][number];

const accept = async (params: Named, pin: string): Promise<void> => {
  await request("POST /v1/projects/:pid/connectors/:slug/catalogue", {
    params,
    payload: { action: "accept", pin },
  });
  notice("The tools are accepted. Agents can use what the rules allow.");
};

/** How the tool differs from its accepted form. */
const Differences = ({ tool }: { readonly tool: Tool }) => {
  const { accepted, request: sends, description, input_schema: schema } = tool;
  if (accepted === null) return null;
  return (
    <>
      {accepted.request !== sends && (
        <span className="reason">{`The accepted request was: ${accepted.request ?? "none"}`}</span>
      )}
      {accepted.description !== description && (
        <span className="reason">{`The accepted description was: ${accepted.description}`}</span>
      )}
      {JSON.stringify(accepted.input_schema) !== JSON.stringify(schema) && (
        <span className="reason">Its arguments changed.</span>
      )}
    </>
  );
};

const ToolRow = ({ tool }: { readonly tool: Tool }) => {
  const { name, description, input_schema: schema, request: sends, policy, rule, state, accepted } = tool;
  return (
    <Row
      states={
        <>
          {state !== "accepted" && <Tag tone="warn">{state}</Tag>}
          <span title={`Rule: ${rule}`}>
            {policy === "deny" ? <Tag tone="bad">deny</Tag> : <Tag>{policy}</Tag>}
          </span>
        </>
      }
      actions={null}
    >
      <code>{name}</code>
      <Detail>{description}</Detail>
      {sends !== null && (
        <Detail>
          Sends <code>{sends}</code>
        </Detail>
      )}
      <Differences tool={tool} />
      <details className="group">
        <summary>Arguments</summary>
        <CopyBlock text={JSON.stringify(schema, null, 2)} what="the arguments" />
        {accepted !== null && (
          <>
            <p>The accepted ones were:</p>
            <CopyBlock text={JSON.stringify(accepted.input_schema, null, 2)} what="the accepted arguments" />
          </>
        )}
      </details>
    </Row>
  );
};

interface Shown {
  readonly project: Project;
  readonly catalogue: Catalogue;
  /** Undefined while the manifest changes. */
  readonly known: Connector | undefined;
}

const isAccepted = ({ state }: Tool): boolean => state === "accepted";
const isOpen = (tool: Tool): boolean => !isAccepted(tool);

const Notes = ({ failure, tools, removed }: Catalogue) => {
  const waiting = tools.filter(isOpen).length;
  return (
    <>
      {failure !== null && (
        <Callout tone="bad">{`The last fetch failed: ${failure} Accepted tools stay usable.`}</Callout>
      )}
      {waiting + removed.length > 0 && (
        <Callout tone="warn">
          {waiting > 0 && `${counted(waiting, "tool is", "tools are")} hidden from agents until you accept. `}
          {removed.length > 0 && `The server no longer has ${removed.join(", ")}.`}
        </Callout>
      )}
    </>
  );
};

const Acts = ({ project: { id: pid }, catalogue, known }: Shown) => {
  const { slug, pin, tools, removed } = catalogue;
  const named = { pid, slug };
  return (
    <p className="actions">
      {pin !== null && (tools.some(isOpen) || removed.length > 0) && (
        <RoleAct
          entry="accept-connector"
          label="Accept these tools"
          about={slug}
          className="primary"
          does={() => accept(named, pin)}
        />
      )}
      <RoleAct
        entry="refresh-connector"
        label="Fetch the tools again"
        about={slug}
        does={() => refresh(named)}
      />
      {known !== undefined && (known.credential !== null || known.sign_in !== null) && (
        <RoleAct
          entry="forget-connector-credential"
          label={known.credential_of === "user" ? "Delete your credential" : "Delete the credential"}
          about={slug}
          does={() => forget(named)}
        />
      )}
    </p>
  );
};

const Page = ({ data }: { readonly data: Shown }) => {
  const { slug, tools, left_out: leftOut, refreshed_at: fetched, accepted_at: accepted } = data.catalogue;
  const unnamed = data.catalogue.left_out_total - leftOut.length;
  return (
    <>
      <h1>{slug}</h1>
      <p className="quiet">
        {data.known !== undefined && (
          <>
            <code>{data.known.url}</code>
            {" · "}
          </>
        )}
        tools fetched <Time at={fetched} />
        {" · accepted "}
        <Time at={accepted} />
      </p>
      <Notes {...data.catalogue} />
      <Acts {...data} />
      {tools.length === 0 ? (
        <Empty title="No tools are known.">Fetch them from the server.</Empty>
      ) : (
        <ul className="rows">
          {[...tools.filter(isOpen), ...tools.filter(isAccepted)].map((tool) => (
            <ToolRow key={tool.name} tool={tool} />
          ))}
        </ul>
      )}
      {leftOut.length > 0 && (
        <section>
          <h2>Left out</h2>
          <ul className="rows">
            {leftOut.map(({ name, why }) => (
              <Row key={name} states={null} actions={null}>
                <code>{name}</code>
                <Detail>{why}</Detail>
              </Row>
            ))}
          </ul>
          {unnamed > 0 && <p className="quiet">{`And ${unnamed} more.`}</p>}
        </section>
      )}
    </>
  );
};

export const connector = framedPage<Shown>({
  load: async ([pid = "", slug = ""]) => {
    const [project, { connectors: all }, catalogue] = await Promise.all([
      request("GET /v1/projects/:pid", { params: { pid } }),
      request("GET /v1/projects/:pid/connectors", { params: { pid } }),
      request("GET /v1/projects/:pid/connectors/:slug/catalogue", { params: { pid, slug } }),
    ]);
    return { project, catalogue, known: all.find((one) => one.slug === slug) };
  },
  title: ({ project, catalogue }) => `${catalogue.slug} · Connectors of ${project.name}`,
  head: ({ project, catalogue }) => (
    <Trail
      steps={[
        ["Projects", "#/projects"],
        [project.name, projectLink(project.id)],
        ["Connectors", projectLink(project.id, "/connectors")],
        [catalogue.slug, null],
      ]}
    />
  ),
  Body: Page,
});
