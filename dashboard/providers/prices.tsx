/** Prices of models: which models have none, and an owner's own ones. */
import { useState } from "react";
import { ask } from "../frame/dialog.ts";
import { notice } from "../frame/notices.ts";
import { Act } from "../ui/act.tsx";
import { Form, SelectField, TextField } from "../ui/form.tsx";
import { Detail, Row } from "../ui/parts.tsx";
import { ACCOUNT, type Provider, unpricedNames } from "./place.ts";
import { useSought } from "./sought.ts";

type Price = Provider["prices"][string];

interface PricedModel {
  readonly provider: Provider;
  readonly model: string;
}

const NAMES = { input: "Input", cached: "Cached input", output: "Output" } as const;
const KINDS = ["input", "cached", "output"] as const;

/** `acme/acme-large` */
const nameOf = ({ provider, model }: PricedModel): string => `${provider.name}/${model}`;

/** What is typed as dollars. The service says what is wrong with it. */
const dollarsIn = (text = ""): number => Number(text.replaceAll(/[$,\s]/g, ""));

const setPrice = async (
  { provider: { id, prices }, model }: PricedModel,
  { input, cached, output }: Readonly<Record<string, string>>,
): Promise<void> => {
  const own = { input: dollarsIn(input), cached: dollarsIn(cached), output: dollarsIn(output) };
  await ACCOUNT.change(id, { prices: { ...prices, [model]: own } });
  notice(`${model} has its price.`);
};

const removePrice = async (priced: PricedModel): Promise<void> => {
  const { provider, model } = priced;
  const sure = await ask({
    title: "Remove this price?",
    text: `${nameOf(priced)} then has the service's own price, if it knows one.`,
    confirm: "Remove",
    danger: true,
  });
  if (sure === null) return;
  const { [model]: _former, ...prices } = provider.prices;
  await ACCOUNT.change(provider.id, { prices });
  notice(`The price of ${model} is removed.`);
};

const PriceFields = ({ price }: { readonly price?: Price }) =>
  KINDS.map((kind) => (
    <TextField
      key={kind}
      name={kind}
      label={NAMES[kind]}
      hint="Dollars for a million tokens"
      required
      {...(price !== undefined && { initial: String(price[kind]) })}
    />
  ));

const PriceRow = ({ priced, price }: { readonly priced: PricedModel; readonly price: Price }) => {
  const [isOpen, setOpen] = useState(false);
  const name = nameOf(priced);
  return (
    <>
      <Row
        states={null}
        actions={
          <>
            <Act label={isOpen ? "Close" : "Change"} about={name} does={async () => setOpen(!isOpen)} />
            <Act label="Remove" about={name} does={() => removePrice(priced)} />
          </>
        }
      >
        <strong>{name}</strong>
        <Detail>
          {`$${price.input} input, $${price.cached} cached input, $${price.output} output, for a million tokens`}
        </Detail>
      </Row>
      {isOpen && (
        <li>
          <Form
            submit="Change the price"
            sending="Changing…"
            onSend={async (typed) => {
              await setPrice(priced, typed);
              setOpen(false);
            }}
          >
            <PriceFields price={price} />
          </Form>
        </li>
      )}
    </>
  );
};

export const Prices = ({ providers }: { readonly providers: readonly Provider[] }) => {
  const section = useSought("prices");
  const own = providers.flatMap((provider) =>
    Object.entries(provider.prices).map(([model, price]) => ({ provider, model, price })),
  );
  // Those without a price first: somebody came here for them.
  const [unpriced, others] = [true, false].map((isWanted) =>
    providers.flatMap((provider) =>
      provider.models
        .filter((model) => !Object.hasOwn(provider.prices, model))
        .filter((model) => provider.unpriced.includes(model) === isWanted)
        .map((model) => ({ provider, model })),
    ),
  );
  const options = [...(unpriced ?? []), ...(others ?? [])];
  const without = unpricedNames(providers);
  if (options.length === 0 && own.length === 0) return null;
  return (
    <section ref={section}>
      <h2>Prices</h2>
      <p className="quiet">
        {without.length === 0
          ? "Each model has a known price. An own one comes first."
          : `No price is known for ${without.join(", ")}. A limit in dollars refuses calls without a price.`}
      </p>
      {own.length > 0 && (
        <ul className="rows">
          {own.map(({ price, ...priced }) => (
            <PriceRow key={nameOf(priced)} priced={priced} price={price} />
          ))}
        </ul>
      )}
      {options.length > 0 && (
        <Form
          // A model that has its price leaves the list, and what was typed for it.
          key={options.map(nameOf).join(" ")}
          submit="Set the price"
          sending="Setting…"
          onSend={async ({ model: chosen = "", ...typed }) => {
            const found = options.find((one) => nameOf(one) === chosen);
            if (found !== undefined) await setPrice(found, typed);
          }}
        >
          <SelectField
            name="model"
            label="Model"
            options={options.map((one) => [nameOf(one), nameOf(one)] as const)}
          />
          <PriceFields />
        </Form>
      )}
    </section>
  );
};
