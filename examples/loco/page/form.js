// A contact as a form. It remembers the version that it was filled in from, so that what others change meanwhile is kept.

import { el, fill, named, say } from "/dom.js";
import { act } from "/parts.js";

const EDGE = 512;
const LABELS = {
  name: "Name", company: "Company", town: "Town", email: "E-mail", phones: "Phones", tags: "Tags", notes: "Notes", photo: "Photo",
};

/** A member of a card as one line. */
function told(name, value) {
  if (name === "photo") return value ? "another photo" : "no photo";
  if (name === "phones") value = value.map((phone) => phone.number).join(", ");
  if (name === "tags") value = value.join(", ");
  return value ? named(value) : "empty";
}

/** Says in the form that is open what others changed since it was filled in; all fields stay as they are. */
export function showMeanwhile(view, now) {
  const form = view.querySelector("form.card");
  if (!form?.filledFrom) return;
  const there = form.querySelector(".meanwhile"), text = (name, card) => JSON.stringify(card[name]);
  if (!now.card) return fill(there, now.problem ? null : el("p", {}, "This contact was deleted meanwhile. Saving brings it back."));
  const changed = Object.keys(LABELS).filter((name) => text(name, now.card) !== text(name, form.filledFrom));
  fill(there, changed.length ? [
    el("p", {}, "Changed elsewhere since this form was opened. Saving keeps both edits, and asks where both changed the same."),
    el("dl", { class: "facts" }, changed.map((name) => [el("dt", {}, LABELS[name]), el("dd", {}, told(name, now.card[name]))]))] : null);
}

/** A photo as a JPEG of at most 512 pixels, in Base64: phones take pictures of many megabytes. */
async function small(file) {
  const picture = await createImageBitmap(file);
  const scale = Math.min(1, EDGE / Math.max(picture.width, picture.height));
  const canvas = el("canvas");
  canvas.width = Math.max(1, Math.round(picture.width * scale));
  canvas.height = Math.max(1, Math.round(picture.height * scale));
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL("image/jpeg", 0.85).split(",")[1];
}

function line(phone) {
  const made = el("div", { class: "line" },
    el("input", { type: "text", value: phone.label, placeholder: "mobile", "aria-label": "Kind of number" }),
    el("input", { type: "text", value: phone.number, placeholder: "Number", "aria-label": "Number", inputmode: "tel" }),
    el("button", { type: "button", "aria-label": "Remove this number", onclick: () => made.remove() }, "Remove"));
  made.phoneId = phone.id;
  return made;
}

/** The form of a contact, or of a new one. */
export function showForm(contact) {
  if (contact && !contact.card) return el("p", { class: "problem" }, contact.problem ?? "This contact was deleted.");
  const card = contact?.card ?? { name: "", company: "", town: "", email: "", phones: [], tags: [], notes: "", photo: null };
  const back = contact ? "#/contact/" + encodeURIComponent(contact.id) : "#/";
  let picture = null;
  const field = (name, label, value) => el("div", {}, el("label", { for: "field-" + name }, label),
    el("input", { type: "text", id: "field-" + name, name, value, autocomplete: "off" }));
  const phones = el("div", {}, card.phones.map(line));
  if (!card.phones.length) phones.append(line({ label: "mobile", number: "" }));
  const photoSaid = el("span", { class: "muted small", role: "status" }, card.photo ? "There is a photo." : "");
  let photo = card.photo;
  const take = async (event) => {
    try {
      picture = event.target.files[0] ? await small(event.target.files[0]) : null;
      photoSaid.textContent = picture ? "The new photo is saved with the rest." : "";
    } catch {
      say("This file is no picture that the browser knows.");
    }
  };
  const drop = () => {
    photo = null;
    picture = null;
    photoSaid.textContent = "Without a photo.";
  };
  const form = el("form", { class: "card" },
    field("name", "Name", card.name),
    el("div", { class: "two" }, field("company", "Company", card.company), field("town", "Town", card.town)),
    field("email", "E-mail", card.email),
    el("fieldset", {}, el("legend", {}, "Phones"), phones,
      el("button", { type: "button", onclick: () => phones.append(line({ label: "", number: "" })) }, "Add a number")),
    field("tags", "Tags, with commas between them", card.tags.join(", ")),
    el("div", {}, el("label", { for: "field-notes" }, "Notes"), el("textarea", { id: "field-notes", name: "notes", value: card.notes })),
    el("fieldset", {}, el("legend", {}, "Photo"), el("div", { class: "picture" },
      el("input", { type: "file", accept: "image/*", "aria-label": "A new photo", onchange: take }),
      card.photo ? el("button", { type: "button", onclick: drop }, "No photo") : null, photoSaid)),
    el("div", { class: "meanwhile", role: "status" }),
    el("div", { class: "row-of ends" }, el("button", { class: "primary" }, "Save"), el("a", { class: "button", href: back }, "Cancel")));
  form.filledFrom = contact && card;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const given = Object.fromEntries(new FormData(form));
    const numbers = [...phones.children].map((one) => {
      const [label, number] = one.querySelectorAll("input");
      return { id: one.phoneId, label: label.value, number: number.value };
    });
    const tags = given.tags.split(",").map((tag) => tag.trim()).filter(Boolean);
    act("save", { id: contact?.id, at: contact?.at, picture, card: { ...given, phones: numbers, tags, photo } }, (saved) => {
      location.hash = "#/contact/" + encodeURIComponent(saved.id);
    });
  });
  return el("div", {}, el("div", { class: "head" }, el("h2", {}, contact ? ["Edit ", named(card.name)] : "New contact")), form);
}
