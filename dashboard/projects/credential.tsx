/** Fields that several forms have for a repository at another server. Their names are those of the API. */
import { FieldGroup, given, TextField } from "../ui/form.tsx";

type Typed = Readonly<Record<string, string>>;

/** What is typed below a prefix, without the prefix and without what is empty. */
export const typedBelow = (prefix: string, typed: Typed): Typed =>
  Object.fromEntries(
    Object.entries(given(typed)).flatMap(([name, text]) =>
      name.startsWith(prefix) ? [[name.slice(prefix.length), text]] : [],
    ),
  );

/** What is typed for a repository or for its credential: its own fields, and those of an app. The service names what is missing. */
export const credentialOf = (prefix: string, typed: Typed): Readonly<Record<string, unknown>> => {
  const fields = Object.entries(typedBelow(prefix, typed)).filter(([name]) => !name.includes("."));
  const app = typedBelow(`${prefix}app.`, typed);
  return { ...Object.fromEntries(fields), ...(Object.keys(app).length > 0 && { app }) };
};

/** A GitHub App in place of a token. @param props `prefix` of its fields' names in the API */
export const AppFields = ({ prefix }: { readonly prefix: string }) => (
  <FieldGroup title="Use a GitHub App instead of a token">
    <TextField
      name={`${prefix}app.app_id`}
      label="App id"
      hint="On the page of the app's settings, below its name."
    />
    <TextField
      name={`${prefix}app.installation_id`}
      label="Installation id"
      hint="Install the app on the repository. The number is the end of the address of the installation's page."
    />
    <TextField
      name={`${prefix}app.private_key`}
      label="Private key of the app"
      hint="The content of the `.pem` file that GitHub makes under “Private keys”."
      lines={3}
      mono
    />
  </FieldGroup>
);
