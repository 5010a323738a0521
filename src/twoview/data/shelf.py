"""What the synthetic shop sells and to whom: in an aisle an item is likely followed by its neighbour."""

import re

LINES = {
    "coffee": (
        "Espresso beans, dark roast|Paper filters|Burr grinder|Pour-over kettle|Glass carafe|"
        "Milk frother|Oat milk, barista|Espresso cups, set of two|Tamper, 58 mm|Knock box|"
        "Descaling tablets|Group-head brush|Decaf beans, medium roast|Travel mug|Cold-brew bottle|"
        "Amaretti biscuits"
    ),
    "tea": (
        "Earl Grey, loose leaf|Tea strainer|Cast-iron teapot|Bamboo coaster|Acacia honey|"
        "Porcelain tea bowls|Sencha, first flush|Matcha powder|Matcha whisk|Whisk stand|"
        "Rooibos with vanilla|Tea tin, airtight|Peppermint tea|Chamomile tea|Ginger candy|Shortbread"
    ),
    "baking": (
        "Bread flour, strong|Sourdough starter|Proofing basket|Dough scraper|Scoring knife|"
        "Cast-iron bread pan|Bread knife|Linen bread bag|Rye flour, whole grain|Pumpkin seeds|"
        "Malt syrup|Dried yeast|Rolling pin, maple|Springform tin|Vanilla pods|Icing sugar"
    ),
    "garden": (
        "Tomato seeds, heirloom|Peat-free compost|Seed tray with lid|Plant labels|Watering can, 5 l|"
        "Hand trowel|Clay pots, 14 cm|Bamboo canes|Jute twine|Tomato feed|Gardening gloves|Secateurs|"
        "Lavender seedlings|Slug collars|Kneeling pad|Leaf rake"
    ),
    "cycling": (
        "Commuter helmet|Front light, rechargeable|Rear light|Folding lock|Mudguards|Pannier rack|"
        "Pannier bag, waterproof|Rain trousers|Inner tube, 28 inch|Tyre levers|Mini pump|Patch kit|"
        "Chain oil|Chain cleaner|Multi-tool|Bottle cage"
    ),
    "camping": (
        "Two-person tent|Ground sheet|Sleeping mat|Down sleeping bag|Inflatable pillow|Head torch|"
        "Gas stove|Gas cartridge|Titanium pot|Folding cutlery|Water filter|Dry bag, 20 l|"
        "Trekking poles|Blister plasters|Insect repellent|Compass"
    ),
    "photography": (
        "Instant camera|Instant film, colour|Photo album|Photo corners|Camera strap|Lens cloth|"
        "Instant film, black and white|Tripod, compact|Cable release|Neutral filter|Filter pouch|"
        "Memory card, 128 GB|Card reader|Camera bag|Light meter|Photo frame, oak"
    ),
    "painting": (
        "Watercolour set|Watercolour paper|Round brushes|Mixing palette|Masking fluid|Masking tape|"
        "Sketchbook, A5|Graphite pencils|Kneaded eraser|Fineliners, black|Gouache, white|Spray bottle|"
        "Tabletop easel|Stretched canvas|Acrylic paints|Varnish, matt"
    ),
    "writing": (
        "Fountain pen|Ink, midnight blue|Ink converter|Dotted notebook|Blotting paper|Letter paper|"
        "Lined envelopes|Sealing wax|Brass seal|Postage stamps|Desk blotter|Pen roll, leather|"
        "Mechanical pencil|Pencil leads|Eraser, soft|Bookmarks"
    ),
    "cats": (
        "Kitten food|Feeding bowl|Food mat|Drinking fountain|Fountain filters|Litter box|"
        "Clumping litter|Litter scoop|Scratching post|Feather wand|Catnip mouse|Window hammock|"
        "Grooming brush|Flea comb|Travel crate|Salmon treats"
    ),
    "yoga": (
        "Yoga mat|Mat strap|Cork block|Cotton strap|Bolster|Meditation cushion|Wool blanket|Eye pillow|"
        "Resistance bands|Foam roller|Massage ball|Mat spray|Leggings|Grip socks|Steel bottle|"
        "Singing bowl"
    ),
    "music": (
        "Ukulele, soprano|Clip-on tuner|Ukulele songbook|Padded gig bag|Spare strings|String winder|"
        "Felt picks|Capo|Music stand|Stand light|Metronome|Wall hanger|Practice journal|Kalimba|"
        "Egg shakers|Harmonica in C"
    ),
}
AISLES = {aisle: tuple(line.split("|")) for aisle, line in LINES.items()}
FIRST_NAMES = (
    "ada alba amir anouk ariel bela bruno carla chidi clara dana dario edda elif emil esther farid "
    "fiona goran greta hana hugo ida imani ines ivo jana jonas kaya kenji lara leo lina luca maya "
    "mila milo nadia nils nora olga omar petra priya quinn rafa rosa sami selma tara theo tomas uma "
    "vera viktor wanda yara yusuf zoe"
)
NAMES = tuple(FIRST_NAMES.split())


def titles_of(n_items: int) -> list[str]:
    """Readable names: the first of every aisle, then the second, ...; past the shelf, numbered ones."""
    lines = list(AISLES.values())
    shelf = [title for place in zip(*lines, strict=True) for title in place]
    return [
        shelf[i % len(shelf)] + (f", no. {i // len(shelf) + 1}" if i >= len(shelf) else "")
        for i in range(n_items)
    ]


def slug(title: str) -> str:
    """A title as an id that needs no quotes: `Paper filters` is `paper-filters`."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
