/** Signs a program in that has no browser: the reader types its code, sees what asks, and says what it may do. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { Answer } from "../../src/cli/contract.ts";
import { request } from "../api/client.ts";
import { projectsQuery } from "../api/projects.ts";
import { queries } from "../api/queries.ts";
import { now } from "../elements/format.ts";
import { Act } from "../ui/act.tsx";
import { Form, TextField } from "../ui/form.tsx";
import { framedPage } from "../ui/framed-page.tsx";
import { Callout, Facts, Time } from "../ui/parts.tsx";
import { GrantFields, grantOf } from "./grant.tsx";

/** The login with the code that the reader typed. */
interface Found {
  readonly code: string;
  readonly login: Answer<"POST /v1/device-logins/look">;
  readonly decided: "" | "approved" | "denied";
}

interface Decides {
  readonly found: Found;
  readonly onChange: (found: Found | null) => void;
}

const CodeForm = ({ onFound }: { readonly onFound: (found: Found) => void }) => (
  <>
    <p className="quiet">
      A program without a browser, for example the command line, shows a code of eight letters.
    </p>
    <Form
      submit="Continue"
      sending="Sending…"
      onSend={async ({ code = "" }) => {
        const login = await request("POST /v1/device-logins/look", { payload: { code } });
        onFound({ code, login, decided: "" });
      }}
    >
      <TextField name="code" label="Code" placeholder="BCDF-GHJK" mono required />
    </Form>
  </>
);

const Decision = ({ found, onChange }: Decides) => {
  const { code, login } = found;
  const { data: projects = [] } = useQuery(projectsQuery);
  const approve = async (typed: Readonly<Record<string, string>>): Promise<void> => {
    const approved = await request("POST /v1/device-logins/approve", {
      payload: { code, ...grantOf(typed) },
    });
    onChange({ code, login: approved, decided: "approved" });
  };
  const deny = async (): Promise<void> => {
    await request("POST /v1/device-logins/deny", { payload: { code } });
    onChange({ ...found, decided: "denied" });
  };
  return (
    <>
      <Callout tone="warn">
        <p>
          Approve only if you started this program yourself, just now. It will act as you. If another person
          sent you the code, deny.
        </p>
      </Callout>
      <Facts
        rows={[
          ["Calls itself", <span key="client">{login.client}</span>],
          ["Address", login.address ?? "unknown"],
          ["Software", <span key="software">{login.user_agent ?? "unknown"}</span>],
          ["Started", <Time key="started" at={login.created_at} />],
        ]}
      />
      <Form submit="Approve" sending="Sending…" onSend={approve}>
        <GrantFields projects={projects} />
      </Form>
      <p className="actions">
        <Act label="Deny" className="danger" does={deny} />
      </p>
    </>
  );
};

const Outcome = ({ found: { login, decided }, onChange }: Decides) => (
  <>
    <p>
      {decided === "approved"
        ? `${login.client} is signed in as you. You can close this page and go on there. To end its access, revoke its token on the account's page.`
        : `${login.client} is denied.`}
    </p>
    <p className="actions">
      {decided === "approved" && (
        <a className="button" href="#/account">
          Account
        </a>
      )}
      <button type="button" onClick={() => onChange(null)}>
        Type another code
      </button>
    </p>
  </>
);

const Device = () => {
  const [found, setFound] = useState<Found | null>(null);
  const isOver = found === null || Date.parse(found.login.expires_at) <= now();
  return (
    <>
      <h1>Sign in a program</h1>
      {isOver ? (
        <CodeForm onFound={setFound} />
      ) : found.decided === "" ? (
        <Decision found={found} onChange={setFound} />
      ) : (
        <Outcome found={found} onChange={setFound} />
      )}
    </>
  );
};

export const device = framedPage<void>({
  load: async () => {
    await queries.query(projectsQuery);
  },
  title: () => "Sign in a program",
  Body: Device,
});
