/** The account: who is signed in, how many sessions it may have, and its access tokens. */
import { queryOptions, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import type { Answer } from "../../src/cli/contract.ts";
import { orNull, request } from "../api/client.ts";
import { pagedQuery } from "../api/lists.ts";
import { type Project, projectsQuery } from "../api/projects.ts";
import { queries } from "../api/queries.ts";
import { counted } from "../elements/format.ts";
import { ask } from "../frame/dialog.ts";
import { notice } from "../frame/notices.ts";
import { OwnNotifications, ownQuery } from "../notifications/own.tsx";
import { Act, FrameAct } from "../ui/act.tsx";
import { Form, TextField } from "../ui/form.tsx";
import { framedPage } from "../ui/framed-page.tsx";
import { Detail, Empty, Facts, More, Row, Tag, Time } from "../ui/parts.tsx";
import { GrantFields, grantOf } from "./grant.tsx";
import { showToken } from "./token.ts";

type Me = Answer<"GET /v1/me">;
type Token = Answer<"GET /v1/tokens">["tokens"][number];

const tokensQuery = pagedQuery(["tokens"], (query) => request("GET /v1/tokens", { query }));

const holdersQuery = queryOptions({
  queryKey: ["people", "holders"],
  // A token of one project may not read them.
  queryFn: async () =>
    (await orNull(request("GET /v1/people", { query: { limit: 200 } }), [403]))?.people ?? [],
});

const revoke = async ({ id, name }: Token, isOwn: boolean): Promise<void> => {
  const sure = await ask({
    title: `Revoke the token ${name}?`,
    text: isOwn
      ? "This browser uses it: you will be signed out."
      : "It stops working within a second, and what it opened ends.",
    confirm: "Revoke",
    danger: true,
  });
  if (sure === null) return;
  await request("DELETE /v1/tokens/:id", { params: { id } });
  notice(`The token ${name} was revoked.`);
};

interface TokenParts {
  readonly token: Token;
  readonly isOwn: boolean;
  /** Whose token it is, if not the reader's. An owner sees those of all people. */
  readonly holder: string | null;
  readonly projects: readonly Project[];
}

const TokenRow = ({ token, isOwn, holder, projects }: TokenParts) => {
  const { name, origin, project_id: project, last_used_at: used, expires_at: expires } = token;
  const reaches =
    project === null
      ? "Whole account"
      : `Only ${projects.find(({ id }) => id === project)?.name ?? "one project"}`;
  return (
    <Row
      states={
        <>
          {origin !== "user" && (
            <Tag>{`made for a ${origin === "trigger" ? "trigger's session" : "session"}`}</Tag>
          )}
          {isOwn && <Tag>this browser</Tag>}
        </>
      }
      actions={<Act label="Revoke" about={name} does={() => revoke(token, isOwn)} />}
    >
      <strong>{name}</strong>
      <Detail>
        {holder !== null && `Of ${holder} · `}
        {`${reaches} · last used `}
        <Time at={used} />
        {expires === null ? " · does not expire" : " · expires "}
        {expires !== null && <Time at={expires} />}
      </Detail>
    </Row>
  );
};

const makeToken = async ({ name = "", ...typed }: Readonly<Record<string, string>>): Promise<void> => {
  const { token } = await request("POST /v1/tokens", { payload: { name, ...grantOf(typed) } });
  showToken(name, token);
};

const Tokens = ({ me }: { readonly me: Me | null }) => {
  const list = useInfiniteQuery(tokensQuery);
  const { data: projects = [] } = useQuery(projectsQuery);
  const { data: people = [] } = useQuery(holdersQuery);
  const tokens = list.data?.pages.flatMap((page) => page.tokens) ?? [];
  const holderOf = ({ user_id: user }: Token): string | null =>
    user === me?.user.id ? null : (people.find(({ id }) => id === user)?.name ?? "another person");
  return (
    <>
      <section>
        <h2>Access tokens</h2>
        <p className="quiet">
          People, the command line, git and programs use access tokens. The service also makes one for each
          running session.
        </p>
        {tokens.length === 0 ? (
          <Empty title="No tokens.">Make one below.</Empty>
        ) : (
          <ul className="rows">
            {tokens.map((token) => (
              <TokenRow
                key={token.id}
                token={token}
                isOwn={token.id === me?.token.id}
                holder={holderOf(token)}
                projects={projects}
              />
            ))}
          </ul>
        )}
        <More list={list}>Show older tokens</More>
      </section>
      <section>
        <h2>New token</h2>
        <Form submit="Create the token" sending="Creating…" onSend={makeToken}>
          <TextField name="name" label="Name" hint="Who or what uses it, for example `laptop`." required />
          <GrantFields projects={projects} />
        </Form>
      </section>
    </>
  );
};

const Link = ({ to, children }: { readonly to: string; readonly children: string }) => (
  <a href={to}>{children}</a>
);

const Reader = ({ me: { account, user } }: { readonly me: Me }) => (
  <Facts
    rows={[
      ["Account", <span key="account">{account.name}</span>],
      ["Signed in as", <span key="user">{user.name}</span>],
      ["Role", user.role],
      [
        "People",
        <Link key="people" to="#/people">
          Everyone in the account
        </Link>,
      ],
      [
        "Models",
        <Link key="models" to="#/models">
          Providers of models
        </Link>,
      ],
      [
        "Browsers",
        <Link key="browsers" to="#/browsers">
          Where you are signed in
        </Link>,
      ],
      ["Audit", user.role === "owner" && <Link to="#/audit">Who did what</Link>],
      ["Tier", account.tier],
      ["Sessions", `${account.active_sessions} of ${counted(account.session_cap, "session")}`],
      [
        "Queue",
        <Link key="queue" to="#/account/state">
          Why runs start or wait
        </Link>,
      ],
    ]}
  />
);

/** An installation begins with an account and a person whose names it chose itself. */
const Names = ({ me: { account, user } }: { readonly me: Me }) => {
  const save = async ({ person = "", account: named = "" }: Readonly<Record<string, string>>) => {
    if (person !== user.name)
      await request("PATCH /v1/people/:id", { params: { id: user.id }, payload: { name: person } });
    if (named !== account.name) await request("PATCH /v1/account", { payload: { name: named } });
    notice("The names are saved.");
  };
  return (
    <section>
      <h2>Names</h2>
      <Form key={`${user.name} ${account.name}`} submit="Save the names" sending="Saving…" onSend={save}>
        <TextField
          name="person"
          label="Your name"
          hint="Everyone in the account sees it beside what you do."
          initial={user.name}
          required
        />
        <TextField
          name="account"
          label="Name of the account"
          hint="People whom you invite see it."
          initial={account.name}
          required
        />
      </Form>
    </section>
  );
};

const Account = ({ me }: { readonly me: Me | null }) => (
  <>
    <h1>Account</h1>
    {me !== null && <Reader me={me} />}
    <p className="actions">
      <FrameAct name="sign-out" input={{}}>
        Sign out of this browser
      </FrameAct>
    </p>
    {me?.user.role === "owner" && me.token.project_id === null && <Names me={me} />}
    <OwnNotifications />
    <Tokens me={me} />
  </>
);

export const account = framedPage<void>({
  load: async () => {
    await Promise.all([
      queries.infiniteQuery(tokensQuery),
      queries.query(projectsQuery),
      queries.query(holdersQuery),
      queries.query(ownQuery),
    ]);
  },
  title: () => "Account",
  Body: Account,
});
