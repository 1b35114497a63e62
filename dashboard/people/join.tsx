/**
 * The link of an invitation: what it grants, and the new person's first token. The link's code is a secret: it leaves the address as soon
 * as it is used. Readers who are not signed in see this, too.
 */
import { ApiError, join as accept, post } from "../api/api.ts";
import { moment } from "../elements/format.ts";
import { entered } from "../frame/app.ts";
import { learnProviders, signInProviders } from "../frame/sign-in.ts";
import { FrameAct } from "../ui/act.tsx";
import { Form, TextField } from "../ui/form.tsx";
import { framedPage } from "../ui/framed-page.tsx";
import { Callout, Empty, Facts } from "../ui/parts.tsx";
import type { Me, OpenInvitation } from "../wire.d.ts";

interface Look {
  /** Null: the link does not work, or not any more. */
  readonly invitation: OpenInvitation | null;
  readonly problem: string;
}

const code = (): string => location.hash.split("/")[2] ?? "";

/** The answer about the shown link, so that it is not asked for again and again. */
let looked: (Look & { readonly code: string }) | null = null;
/** The token of the person who has just joined, as long as it is shown. */
let token: string | null = null;

const look = async (asked: string): Promise<Look> => {
  try {
    return { invitation: await post("/dashboard/invitations/look", { code: asked }), problem: "" };
  } catch (error) {
    if (error instanceof ApiError && error.status === 404)
      return { invitation: null, problem: error.message };
    throw error;
  }
};

const projectsOf = ({ role, projects }: OpenInvitation): string => {
  if (role === "owner") return "All";
  const named = projects.map((project) => `${project.name} as ${project.role}`);
  return [...named, "those open to the whole account"].join(", ");
};

const acceptAs = async ({ name = "" }: Readonly<Record<string, string>>): Promise<void> => {
  token = await accept(code(), name);
  looked = null;
  history.replaceState(null, "", "#/joined");
  entered();
};

const Providers = () =>
  signInProviders().length > 0 && (
    <p className="actions">
      {signInProviders().map(({ id, label }) => (
        <FrameAct key={id} name="go-to-provider" input={{ provider: id, invitation: code() }}>
          {`Join with ${label}`}
        </FrameAct>
      ))}
    </p>
  );

const Invited = ({
  invitation,
  me,
}: {
  readonly invitation: OpenInvitation;
  readonly me: Pick<Me, "user"> | null;
}) => (
  <>
    <h1>{`Join the account ${invitation.account}`}</h1>
    <Facts
      rows={[
        ["Invited by", invitation.invited_by],
        ["Role", invitation.role],
        ["Projects", projectsOf(invitation)],
        ["Valid until", moment(invitation.expires_at)],
      ]}
    />
    {me !== null && (
      <Callout tone="warn">
        <strong>{`This browser is signed in as ${me.user.name}. `}</strong>
        Accept only if the link is meant for you. It works once. It makes a new person, and this browser is
        then signed in as that person.
      </Callout>
    )}
    <Form submit="Accept the invitation" sending="Joining…" onSend={acceptAs}>
      <TextField
        name="name"
        label="Your name"
        hint="The people of the account see it."
        initial={invitation.name}
        required
      />
    </Form>
    <Providers />
  </>
);

export const join = framedPage<Look>({
  load: async () => {
    const asked = code();
    if (looked?.code !== asked) {
      const [answer] = await Promise.all([look(asked), learnProviders()]);
      looked = { code: asked, ...answer };
    }
    return looked;
  },
  title: () => "Invitation",
  Body: ({ data: { invitation, problem }, me }) =>
    invitation === null ? (
      <>
        <h1>Invitation</h1>
        <Empty title={problem}>
          {"If you have joined already, "}
          <a href="#/">sign in with your access token</a>.
        </Empty>
      </>
    ) : (
      <Invited invitation={invitation} me={me} />
    ),
});

/** The first page of a new person: her token, once. */
export const joined = framedPage<void>({
  load: () => Promise.resolve(),
  follow: () => ({
    end: () => {
      token = null;
    },
  }),
  title: () => "Welcome",
  Body: () => (
    <>
      <h1>You have joined</h1>
      {token !== null && (
        <section>
          <h2>Your access token</h2>
          <p>
            Keep it, for example in a password manager: you sign in with it next time. It is not shown again.
          </p>
          <p className="copy">
            <code className="long">{token}</code>
            <FrameAct name="copy" input={{ text: token }}>
              Copy
            </FrameAct>
          </p>
        </section>
      )}
      <p className="actions">
        <a className="button primary" href="#/projects">
          Go to the projects
        </a>
      </p>
    </>
  ),
});
