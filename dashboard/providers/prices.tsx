/** Prices of models: which models have none, and an owner's own ones. */
import type { Answer } from "../../src/cli/contract.ts";
import { request } from "../api/client.ts";
import { notice } from "../frame/notices.ts";
import { Form, SelectField, TextField } from "../ui/form.tsx";

type Provider = Answer<"GET /v1/model-providers">["model_providers"][number];

const NAMES = { input: "Input", cached: "Cached input", output: "Output" } as const;

/** What is typed as dollars. The service says what is wrong with it. */
const dollarsIn = (text = ""): number => Number(text.replaceAll(/[$,\s]/g, ""));

const setPrice = async (
  { id, prices }: Provider,
  model: string,
  { input, cached, output }: Readonly<Record<string, string>>,
): Promise<void> => {
  const own = { input: dollarsIn(input), cached: dollarsIn(cached), output: dollarsIn(output) };
  await request("PATCH /v1/model-providers/:id", {
    params: { id },
    payload: { prices: { ...prices, [model]: own } },
  });
  notice(`${model} has its price.`);
};

export const Prices = ({ providers }: { readonly providers: readonly Provider[] }) => {
  const models = providers.flatMap((provider) =>
    provider.models.map((model) => ({ provider, model, name: `${provider.name}/${model}` })),
  );
  const unpriced = models.filter(({ provider, model }) => provider.unpriced.includes(model));
  if (models.length === 0) return null;
  // Those without a price first: somebody came here for them.
  const options = [...unpriced, ...models.filter((one) => !unpriced.includes(one))];
  return (
    <section>
      <h2>Prices</h2>
      <p className="quiet">
        {unpriced.length === 0
          ? "Each model has a known price. An own one comes first."
          : `No price is known for ${unpriced.map(({ name }) => name).join(", ")}. Where a limit in dollars applies, calls of such a model are refused.`}
      </p>
      <Form
        submit="Set the price"
        sending="Setting…"
        onSend={async ({ model: chosen = "", ...typed }) => {
          const found = options.find(({ name }) => name === chosen);
          if (found !== undefined) await setPrice(found.provider, found.model, typed);
        }}
      >
        <SelectField name="model" label="Model" options={options.map(({ name }) => [name, name] as const)} />
        {Object.entries(NAMES).map(([name, label]) => (
          <TextField key={name} name={name} label={label} hint="Dollars for a million tokens" required />
        ))}
      </Form>
    </section>
  );
};
